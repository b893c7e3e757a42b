"""A migration that is killed leaves the catalog as it was, or finished."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog.uri import parse_uri

pytestmark = pytest.mark.sampled(5)

#: Migrates a lake, and ends the process at once when so many changes of the catalog have begun.
_MIGRATE = """
import os, sys
import sqlalchemy as sa
import ducklake_lab as dl

uri, left = sys.argv[1], int(sys.argv[2])
changes = 0

def changed(*args):
    global changes
    if args and isinstance(args[2] if len(args) > 2 else None, str):
        if not args[2].lstrip().upper().startswith(("ALTER", "CREATE", "INSERT", "UPDATE")):
            return
    changes += 1
    if changes == left:
        os._exit(9)

sa.event.listen(sa.Engine, "before_cursor_execute", changed)
sa.event.listen(sa.Engine, "commit", lambda connection: changed())
with dl.connect(uri, automatic_migration=True, ducklake_version="1.1"):
    print(changes)
"""


def _copy_database(uri: str, name: str, target: str) -> None:
    """Copies a database of PostgreSQL over another one."""
    engine = sa.create_engine(parse_uri(uri).url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'DROP DATABASE IF EXISTS "{target}" WITH (FORCE)')
        connection.exec_driver_sql(f'CREATE DATABASE "{target}" TEMPLATE "{name}"')
    engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgres"])
def test_a_killed_migration(kind: str, new_catalog: Callable[..., str], tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.0") as session:
        session.sql("CREATE TABLE t (i INTEGER, s STRUCT(a INTEGER)); INSERT INTO t VALUES (1, {'a': 1}), (2, NULL)")
        session.sql(
            "ALTER TABLE t ADD COLUMN v VARCHAR DEFAULT 'x'; INSERT INTO t SELECT range, NULL, 'y' FROM range(50)"
        )
        session.sql("DELETE FROM t WHERE i % 7 = 0; CREATE SCHEMA other; CREATE TABLE other.u (i INTEGER)")
        expected = session.sql("FROM t ORDER BY ALL").fetchall()
    path, name = Path(uri.rpartition(":")[2]), str(parse_uri(uri).url.database)

    def copy(source: str, target: str) -> None:
        if kind == "postgres":
            _copy_database(uri, name + source, name + target)
        else:
            shutil.copyfile(f"{path}{source}", f"{path}{target}")

    copy("", ".kept")

    def migrate(left: int) -> int | None:
        """Migrate, and return the number of begun changes; None where the process was killed before that many."""
        copy(".kept", "")
        command = [sys.executable, "-c", _MIGRATE, uri, str(left)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode in (0, 9), done.stderr
        return int(done.stdout) if done.returncode == 0 else None

    total = migrate(0)
    assert total is not None
    assert total > 8
    for left in sorted({1, 2, total // 3, total // 2, total - 2, total - 1, total}):
        assert migrate(left) is None, f"{left} of {total}"
        with dl.connect(uri, alias="lake") as session:
            assert session.sql("FROM t ORDER BY ALL").fetchall() == expected
            assert session.current_lake.version.name == "1.0"
            session.sql("INSERT INTO other.u VALUES (1)")
            assert session.sql("FROM other.u").fetchall() == [(1,)]
    assert migrate(0) == total
    with dl.connect(uri, alias="lake") as session:
        assert session.sql("FROM t ORDER BY ALL").fetchall() == expected
        assert session.current_lake.version.name == "1.1"
        session.sql("CREATE SCHEMA other.deep; CREATE TABLE other.deep.w AS FROM t")
        assert session.sql("FROM other.deep.w ORDER BY ALL").fetchall() == expected
