"""Spark's own SQL over tables of lakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl


def test_queries_in_sparks_sql(spark: Any, new_catalog: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(new_catalog(), alias="lake", data_path=f"{tmp_path}/data", spark=spark, engine="spark") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS s FROM range(20) r(i)")
        session.sql("CREATE VIEW v AS SELECT i * 2 AS twice FROM t WHERE i < 3; DELETE FROM t WHERE i >= 10")

        def rows(text: str, **params: Any) -> list[tuple[Any, ...]]:
            return session.sql(text, params or None, dialect="spark").fetchall()

        assert rows("SELECT count(*), max(`s`) FROM t") == [(10, "v9")]
        assert rows("SELECT count(*) FROM lake.main.t VERSION AS OF 1 AS x JOIN t USING (i)") == [(10,)]
        assert rows("SELECT count(*) FROM t FOR VERSION AS OF 1") == [(20,)]
        assert rows("SELECT count(*) FROM t TIMESTAMP AS OF current_timestamp()") == [(10,)]
        assert rows("SELECT sum(twice) FROM v") == [(6,)]
        assert rows("SELECT t.s FROM t WHERE i = :i", i=4) == [("v4",)]
        # what a notebook holds beside it is left alone
        assert rows("SELECT t.s, ':other' FROM t WHERE i =:i -- :other", i=4, other=object()) == [("v4", ":other")]
        assert rows('SELECT "text", stack(2, 1, 2) LIMIT 1') == [("text", 1)]
        assert rows("SELECT max(snapshot_id) FROM lake.snapshots()") == [(session.current_snapshot().snapshot_id,)]
        with pytest.raises(dl.UnsupportedFeatureError, match="one query"):
            rows("INSERT INTO t VALUES (1, 'x')")
        with pytest.raises(dl.UsageError, match='Parameter "j" has no value'):
            rows("SELECT :j", i=4)
        with pytest.raises(dl.UsageError, match="not a dialect"):
            session.sql("SELECT 1", dialect="oracle")  # type: ignore[arg-type]
