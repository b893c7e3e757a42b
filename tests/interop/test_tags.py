"""Tags of tables that only we read: the reference keeps them through its own changes of the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb

import ducklake_lab as dl
from ducklake_lab.catalog import attachments
from tests.interop.comparing import attach, detach

KEY = "ducklake_lab.test"

CHANGES = [
    "INSERT INTO lake.t VALUES (2)",
    "COMMENT ON TABLE lake.t IS 'theirs'",
    "ALTER TABLE lake.t ADD COLUMN j INTEGER",
    "ALTER TABLE lake.t RENAME TO u",
    "CALL ducklake_flush_inlined_data('lake')",
]


def _tags(session: dl.Session) -> list[str]:
    lake = session._lakes.get()
    with lake.connect() as connection:
        return list(attachments.table_tags(connection, lake.snapshot(connection).snapshot_id, KEY).values())


def test_the_reference_keeps_tags(lake_uri: Callable[..., str], reference: duckdb.DuckDBPyConnection, tmp_path: Path):
    uri = lake_uri()
    with dl.connect(uri, data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        lake = session._lakes.get()
        with session._transactions.writing(lake) as transaction:
            transaction.set_tag(transaction.state.table("main", "t"), KEY, "kept")
    for change in CHANGES:
        attach(reference, uri)
        reference.execute(change)
        detach(reference)
        with dl.connect(uri, alias="lake", engine="duckdb") as session:
            assert _tags(session) == ["kept"], change
    attach(reference, uri)
    assert reference.execute("SELECT count(*), max(i) FROM lake.u").fetchall() == [(2, 2)]
    reference.execute("DROP TABLE lake.u")
    detach(reference)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert _tags(session) == []
