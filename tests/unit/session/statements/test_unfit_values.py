"""A statement whose values do not fit says which value, which type and which column, and leaves no snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import ducklake_lab as dl


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        yield session


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO t SELECT 1, s FROM t", "Column d: 'x' is no DATE (YYYY-MM-DD). TRY_CAST gives NULL instead."),
        ("INSERT INTO t (d, s) SELECT s, s FROM t", "Column d: 'x' is no DATE"),
        ("INSERT INTO t VALUES ('x', 'no date')", "'no date' is no DATE (YYYY-MM-DD) (line 1, column 28)."),
        ("UPDATE t SET d = 'no date'", "'no date' is no DATE (YYYY-MM-DD) (line 1, column 18)."),
        ("UPDATE t SET d = s", "Column s: 'x' is no DATE"),
        (
            "MERGE INTO t USING (SELECT 'y' AS k) u ON true WHEN MATCHED THEN UPDATE SET d = k",
            "Column k: 'y' is no DATE",
        ),
    ],
)
def test_statements_that_fail_name_the_column(session: dl.Session, statement: str, said: str) -> None:
    session.sql("CREATE TABLE t (s VARCHAR, d DATE); INSERT INTO t VALUES ('x', NULL)")
    before = session.current_snapshot()
    with pytest.raises(dl.ConstraintError) as caught:
        session.sql(statement)
    assert str(caught.value).startswith(said)
    assert session.current_snapshot() == before


@pytest.mark.every_catalog
def test_frames_that_do_not_fit_name_the_column(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (s VARCHAR, d DATE)")
    with pytest.raises(dl.ConstraintError, match=r"^Column d: 'no date' is no DATE"):
        session.write(pd.DataFrame({"s": ["x"], "d": ["no date"]}), "t")
