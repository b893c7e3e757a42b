"""Methods of sqlglot that the dialect overrides are those that each override was compared with."""

from __future__ import annotations

import pytest
import sqlglot

from tests.unit.sql.upstream import CHECKED, digest, overridden, sources


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:3]))


def test_every_override_is_in_the_table():
    names = list(overridden())
    assert sorted(set(names)) == sorted(CHECKED)
    assert [name for name in names if not any(method == name for _, method in sources())] == []


@pytest.mark.parametrize("name", CHECKED)
def test_upstream_is_what_the_override_was_compared_with(name: str):
    version, checked = CHECKED[name]
    if numbers(sqlglot.__version__) < numbers(version):
        pytest.skip(f"compared with sqlglot {version}, which is newer")
    assert digest(name) == checked, (
        f"sqlglot {sqlglot.__version__} has another {name} than {version}: read it, mend the override of it in "
        f"ducklake_lab/sql, then note it in tests/unit/sql/upstream.py."
    )


def test_a_change_upstream_is_seen(monkeypatch: pytest.MonkeyPatch):
    before = digest("_parse_window")
    changed = {**sources(), ("Parser", "_parse_window"): "def _parse_window(self): ..."}
    monkeypatch.setattr("tests.unit.sql.upstream.sources", lambda: changed)
    assert digest("_parse_window") != before
