"""Exports: Delta's and Iceberg's own packages read the rows of the lake at the snapshot."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.foreign import exporting
from tests.unit.foreign.tables import check_same, delta_rows, lake_rows

FORMATS = ("delta", "iceberg")
pytestmark = [pytest.mark.parametrize("kind", FORMATS), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _packages(kind: str) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[kind], reason=f"needs the extra [{kind}]")


@pytest.fixture
def session(lake_uri: Callable[[], str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        yield session


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"{tmp_path}/out/a table % é"


def foreign_rows(kind: str, path: str) -> pa.Table:
    if kind == "delta":
        return delta_rows(Path(path))
    from pyiceberg.table import StaticTable

    newest = (Path(path) / "metadata" / "version-hint.text").read_text()
    return StaticTable.from_metadata(f"{path}/metadata/v{newest}.metadata.json").scan().to_arrow()


def exported(session: dl.Session, kind: str, path: str, name: str = "t", **options: object) -> tuple[int, int]:
    """Export a table and compare it with the lake's; the numbers of linked and written files."""
    made = session.table(name, at=options.pop("at", None)).export(kind, path, **options)  # type: ignore[arg-type]
    found = foreign_rows(kind, path)
    assert made.rows == found.num_rows
    check_same(found, session.sql(f"FROM {name}", at=made.snapshot_id).arrow())
    return made.linked, made.written


COMMON = """
CREATE TABLE t AS SELECT * FROM (VALUES
  (true, 1, -9223372036854775808, 'nan'::FLOAT, '-inf'::DOUBLE, DATE '0001-01-01', TIMESTAMP '1969-12-31 23:59:59.999999',
   TIMESTAMPTZ '2020-01-01 00:00:00+00', '', ''::BLOB, -99.99::DECIMAL(4,2), 1::DECIMAL(38,0),
   {'a': 1, 'b': NULL::VARCHAR}, [1, NULL], MAP {'k': 1::BIGINT}, [{'x': [DATE '2020-01-01']}]),
  (false, -1, 9223372036854775807, '-0'::FLOAT, 'nan'::DOUBLE, DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59.999999',
   TIMESTAMPTZ '0001-01-01 00:00:00+00', 'é\n"', '\\x00\\xFF'::BLOB, 0.01::DECIMAL(4,2), -1::DECIMAL(38,0),
   {'a': NULL, 'b': 'x'}, [], MAP {}, [NULL]),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
) AS v(b, i, l, f, d, day, local, moment, s, bytes, small, large, st, li, m, deep)
"""


@pytest.mark.parametrize("inlined", [False, True])
def test_every_type_is_exported(session: dl.Session, path: str, kind: str, inlined: bool) -> None:
    session.sql(f"CALL lake.set_option('data_inlining_row_limit', {100 if inlined else 0})")
    # pyiceberg itself reads a NULL list of structs as an empty one; DuckDB reads it in tests/interop
    session.sql(COMMON if kind == "delta" else COMMON.replace("NULL)\n)", "[])\n)"))
    more = {"delta": ("i8 TINYINT", "-128"), "iceberg": ("u UUID", "'00112233-4455-6677-8899-aabbccddeeff'")}[kind]
    session.sql(f"CREATE TABLE u({more[0]}); INSERT INTO u VALUES ({more[1]}), (NULL)")
    if kind == "iceberg":
        session.sql("CREATE TABLE c(c TIME); INSERT INTO c VALUES ('23:59:59.999999'), (NULL)")
        exported(session, kind, f"{path}c", "c")
    assert exported(session, kind, path) == ((0, 1) if inlined else (1, 0))
    exported(session, kind, f"{path}2", "u")


def test_files_are_linked_and_changed_rows_written(session: dl.Session, path: str, kind: str) -> None:
    session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS s FROM range(1000) r(i)")
    session.sql("INSERT INTO t SELECT i, 'w' FROM range(1000, 2000) r(i)")
    session.sql("INSERT INTO t VALUES (2000, NULL)")
    before = session.current_snapshot().snapshot_id
    assert exported(session, kind, f"{path}1") == (2, 1)
    session.sql(
        "DELETE FROM t WHERE i % 3 = 0 AND i < 1000; UPDATE t SET s = 'u' WHERE i = 1500; DELETE FROM t WHERE i = 2000"
    )
    assert exported(session, kind, f"{path}2") == (0, 1)
    assert exported(session, kind, f"{path}3", at=before) == (2, 1)
    made = next(file for file in Path(f"{path}1").rglob("*.parquet") if os.stat(file).st_nlink == 3)
    session.sql("DROP TABLE t; CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
    assert os.stat(made).st_nlink == 2
    assert foreign_rows(kind, f"{path}1").num_rows == 2001


def test_altered_columns(session: dl.Session, path: str, kind: str) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    session.sql("CREATE TABLE t(a INTEGER, b VARCHAR, s STRUCT(x INTEGER, y INTEGER))")
    session.sql("INSERT INTO t VALUES (1, 'one', {'x': 1, 'y': 2})")
    session.sql("ALTER TABLE t ADD COLUMN c VARCHAR")
    session.sql("INSERT INTO t VALUES (2, 'two', NULL, 'c')")
    assert exported(session, kind, f"{path}1") == (2, 0)
    session.sql("ALTER TABLE t RENAME COLUMN b TO z; ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN c INTEGER")
    session.sql("INSERT INTO t VALUES (3, 'three', {'x': 5, 'y': NULL}, 3)")
    assert exported(session, kind, f"{path}2") == ((3, 0) if kind == "iceberg" else (1, 1))
    session.sql("ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 7")
    assert exported(session, kind, f"{path}3") == (0, 1)
    session.sql(
        "ALTER TABLE t ALTER a SET DATA TYPE BIGINT; INSERT INTO t VALUES (4000000000, 'big', NULL, NULL, NULL)"
    )
    session.sql(
        "ALTER TABLE t RENAME COLUMN s.x TO w; ALTER TABLE t DROP COLUMN s.y; ALTER TABLE t ADD COLUMN s.y BIGINT"
    )
    exported(session, kind, f"{path}4")


def test_added_and_partitioned_files(session: dl.Session, path: str, kind: str, tmp_path: Path) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    session.sql("CREATE TABLE t(i BIGINT, p VARCHAR); ALTER TABLE t SET PARTITIONED BY (p)")
    session.sql("INSERT INTO t VALUES (1, 'a b'), (2, NULL), (3, 'c/d')")
    assert exported(session, kind, f"{path}1") == (3, 0)
    session.sql(f"COPY (SELECT 4 AS i) TO '{tmp_path}/p=x.parquet'")
    (tmp_path / "p=x").mkdir()
    (tmp_path / "p=x.parquet").rename(tmp_path / "p=x" / "f.parquet")
    session.sql(f"CALL lake.add_data_files('t', '{tmp_path}/p=x/f.parquet')")
    assert exported(session, kind, f"{path}2") == (3, 1)


def test_merged_files_of_earlier_snapshots(session: dl.Session, path: str, kind: str) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    session.sql("CREATE TABLE t(i INTEGER)")
    for i in range(3):
        session.sql(f"INSERT INTO t VALUES ({i})")
    before = session.current_snapshot().snapshot_id - 1
    session.sql("CALL lake.merge_adjacent_files()")
    assert exported(session, kind, f"{path}1") == (1, 0)
    assert exported(session, kind, f"{path}2", at=before) == (0, 1)


def test_an_empty_table(session: dl.Session, path: str, kind: str) -> None:
    session.sql("CREATE TABLE t(i INTEGER, s VARCHAR)")
    assert exported(session, kind, path) == (0, 0)


def test_a_target_is_replaced_only_if_asked(session: dl.Session, path: str, kind: str, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(100) r(i); CREATE TABLE u AS SELECT 'x' AS s FROM range(50)")
    exported(session, kind, path)
    listed = sorted(Path(path).rglob("*"))
    with pytest.raises(dl.DuckLakeError, match="with overwrite=True"):
        session.table("u").export(kind, path)
    assert sorted(Path(path).rglob("*")) == listed
    exported(session, kind, path, "u", overwrite=True)
    exported(session, kind, path, "t", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(dl.DuckLakeError, match="so it is not overwritten"):
        session.table("t").export(kind, f"{tmp_path}/mine", overwrite=True)
    assert os.listdir(tmp_path / "mine") == ["file"]


REFUSED = {
    "u UBIGINT": "u of type UBIGINT",
    "h HUGEINT": "h of type HUGEINT",
    "j JSON": "j of type JSON",
    "t TIMESTAMP_NS": "t of type TIMESTAMP_NS",
    "v INTERVAL": "v of type INTERVAL",
    "s STRUCT(a INTEGER, b UINTEGER[])": "s of type STRUCT",
}


def test_what_a_format_lacks_is_refused(session: dl.Session, path: str, kind: str, tmp_path: Path) -> None:
    only = {
        "delta": {"c TIME": "c of type TIME", "u UUID": "u of type UUID"},
        "iceberg": {"i TINYINT": "i of type TINYINT"},
    }
    for number, (column, said) in enumerate({**REFUSED, **only[kind]}.items()):
        session.sql(f"CREATE TABLE r{number}({column})")
        with pytest.raises(dl.UnsupportedFeatureError, match=said):
            session.table(f"r{number}").export(kind, path)
    infinite = {
        "d DATE": "DATE 'infinity'",
        "t TIMESTAMP": "TIMESTAMP '-infinity'",
        "z TIMESTAMPTZ": "TIMESTAMPTZ 'infinity'",
        "n STRUCT(l MAP(VARCHAR, DATE[]))": "{'l': MAP {'k': [NULL, DATE '-infinity']}}",
    }
    for number, (column, value) in enumerate(infinite.items()):
        session.sql(f"CREATE TABLE i{number}({column}); INSERT INTO i{number} VALUES ({value}), (NULL)")
        with pytest.raises(dl.UnsupportedFeatureError, match=f"{column[0]} has an infinite time"):
            session.table(f"i{number}").export(kind, path)
    session.sql("CREATE TABLE o(i INTEGER)")
    with pytest.raises(dl.UnsupportedFeatureError, match="not on this machine's disks"):
        session.table("o").export(kind, "s3://bucket/t")
    with pytest.raises(dl.UsageError, match="whose cleanup would delete it"):
        session.table("o").export(kind, f"{tmp_path}/data/out")
    with pytest.raises(dl.UsageError, match="is not a table format"):
        session.table("o").export("hudi", path)  # type: ignore[arg-type]
    if kind == "iceberg":
        with pytest.raises(dl.UnsupportedFeatureError, match="names of its folders"):
            session.table("o").export(kind, f"{path}#2")
    if kind == "delta":
        session.sql('CREATE TABLE n("a b" INTEGER)')
        with pytest.raises(dl.UnsupportedFeatureError, match='no column named "a b"'):
            session.table("n").export(kind, path)
    assert not (tmp_path / "out").exists()


def test_a_failure_leaves_nothing(session: dl.Session, path: str, kind: str, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(100) r(i); INSERT INTO t SELECT i FROM range(100, 200) r(i)")
    files = sorted((tmp_path / "data").rglob("*.parquet"))
    session.sql("DELETE FROM t WHERE i < 50")
    files[0].write_bytes(b"")
    files[1].write_bytes(b"")
    with pytest.raises(dl.DataFileError):
        session.table("t").export(kind, path)
    assert not (tmp_path / "out").exists()


def test_there_and_back(session: dl.Session, path: str, kind: str) -> None:
    session.sql(COMMON)
    session.sql("CREATE TABLE big AS SELECT i, i % 7 AS p FROM range(10000) r(i); DELETE FROM big WHERE p = 3")
    for name in ("t", "big"):
        session.table(name).export(kind, f"{path}{name}")
        session.add_table(kind, f"{path}{name}", f"{name}_again")
        check_same(lake_rows(session, f"{name}_again"), lake_rows(session, name))


def test_many_files_become_few(session: dl.Session, path: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE t(i INTEGER, s VARCHAR)")
    session.sql("CALL lake.set_option('data_inlining_row_limit', 10)")
    for i in range(7):
        session.sql(f"INSERT INTO t SELECT j, 'x' FROM range({i} * 100, {i} * 100 + 100) r(j)")
    session.sql("DELETE FROM t WHERE i % 2 = 0; INSERT INTO t VALUES (-1, NULL)")
    assert exported(session, kind, f"{path}1") == (0, 1)
    monkeypatch.setattr(exporting, "_FILES_AT_ONCE", 3)
    assert exported(session, kind, f"{path}2") == (0, 3)
    monkeypatch.setattr(exporting, "_WRITTEN_AT_ONCE", 1)
    assert exported(session, kind, f"{path}3") == (0, 7)


@pytest.mark.parametrize("committed", [False, True])
def test_an_interrupt_takes_no_files_of_a_log(
    session: dl.Session, path: str, kind: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    session.sql("CREATE TABLE t AS SELECT i FROM range(100) r(i)")
    package, name = {"delta": ("deltalake.transaction", "create_table_with_add_actions"), "iceberg": ("os", "replace")}[
        kind
    ]
    module = importlib.import_module(package)
    last = getattr(module, name)

    def interrupted(*args: object, **options: object) -> None:
        if committed:
            last(*args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(module, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.table("t").export(kind, path)
    if committed:
        check_same(foreign_rows(kind, path), lake_rows(session, "t"))
    else:
        assert not Path(path).exists()
        exported(session, kind, path)
