"""sqlglot's compiled build, whose classes cannot be extended, is refused by name."""

from __future__ import annotations

import pytest

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.dialect import DuckLakeSql, check_extensible


def test_the_build_that_is_written_in_python_is_taken() -> None:
    check_extensible(DuckLakeSql.Parser)


def test_the_compiled_build_is_refused() -> None:
    def compiled() -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    with pytest.raises(UnsupportedFeatureError, match="pip uninstall sqlglotc"):
        check_extensible(compiled)
