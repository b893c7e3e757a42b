"""Lakes that are found by the name of a secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl


@pytest.fixture
def session() -> Iterator[dl.Session]:
    with dl.Session() as session:
        yield session


def test_the_default_secret_and_a_named_one(session: dl.Session, tmp_path: Path) -> None:
    secret = f"(TYPE ducklake, METADATA_PATH '{tmp_path}/m.db', DATA_PATH '{tmp_path}/files/')"
    assert session.sql(f"CREATE SECRET {secret}").fetchall() == [(True,)]
    session.sql("ATTACH 'ducklake:' AS one; CREATE TABLE one.t (i INTEGER)")
    assert session.lakes[0].data_path == f"{tmp_path}/files/"
    session.sql(
        f"CREATE SECRET named (TYPE DUCKLAKE, METADATA_PATH '{tmp_path}/s.db', DATA_PATH '{tmp_path}/s', "
        "METADATA_PARAMETERS MAP {'TYPE': 'sqlite'})"
    )
    session.sql("ATTACH 'ducklake:named' AS two; CREATE TABLE two.t AS SELECT 1 AS i")
    assert session.sql("SELECT count(*) FROM one.t").fetchall() == [(0,)]
    assert session.sql("FROM two.t").fetchall() == [(1,)]
    with dl.connect(f"ducklake:sqlite:{tmp_path}/s.db") as other:
        assert [info.table.name for info in other.tables()] == ["t"]


def test_a_server_s_login(session: dl.Session, postgres: Callable[[], str], tmp_path: Path) -> None:
    words = dict(word.split("=", 1) for word in postgres().split())
    session.sql(
        f"CREATE SECRET pg (TYPE postgres, HOST '{words['host']}', DATABASE '{words['dbname']}', "
        f"USER '{words['user']}', PASSWORD 'not ''needed'' here')"
    )
    session.sql(
        f"CREATE SECRET lake (TYPE ducklake, METADATA_PATH '', DATA_PATH '{tmp_path}/d', "
        "METADATA_PARAMETERS MAP {'TYPE': 'postgres', 'SECRET': 'pg'})"
    )
    session.sql("ATTACH 'ducklake:lake' AS l; USE l; CREATE TABLE t AS SELECT 7 AS i")
    assert session.sql("FROM t").fetchall() == [(7,)]
    assert "needed" not in repr(session.lakes[0].location) + session.lakes[0].location.display


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ATTACH 'ducklake:mysecret'", 'no secret "mysecret".*Did you mean my_secret'),
        ("ATTACH 'ducklake:'", "no default secret"),
        ("ATTACH 'ducklake:metadata'", "write ducklake:duckdb:metadata"),
        ("CREATE SECRET my_secret (TYPE ducklake, METADATA_PATH 'x.db')", "already"),
        ("CREATE SECRET b (TYPE ducklake, METADATA_PAHT 'x.db')", "Did you mean metadata_path"),
        ("CREATE PERSISTENT SECRET b (TYPE ducklake, METADATA_PATH 'x.db')", "Persistent"),
        ("DROP SECRET other", "no secret"),
    ],
)
def test_mistakes(session: dl.Session, statement: str, message: str) -> None:
    session.sql("CREATE SECRET my_secret (TYPE ducklake, METADATA_PATH 'm.db')")
    with pytest.raises(dl.DuckLakeError, match=message):
        session.sql(statement)
    session.sql("CREATE OR REPLACE SECRET my_secret (TYPE ducklake, METADATA_PATH 'n.db'); DROP SECRET my_secret")
    session.sql("DROP SECRET IF EXISTS my_secret")
