"""A lake with something of each kind, and the faults that tests seed into copies of its catalog."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import ducklake_lab as dl

TABLES = ("t", "u", "w")
SCRIPT = (
    "CALL lake.set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (i INTEGER, s VARCHAR, f DOUBLE)",
    "INSERT INTO t SELECT i, 's' || i, i / 2 FROM range(100) r(i)",
    "INSERT INTO t SELECT i, nullif('s' || i, 's150'), i / 2 FROM range(100, 200) r(i)",
    "DELETE FROM t WHERE i < 5",
    "DELETE FROM t WHERE i < 10",
    "CREATE TABLE u (a INTEGER, p VARCHAR)",
    "ALTER TABLE u SET PARTITIONED BY (p)",
    "INSERT INTO u SELECT i, 'p' || i % 2 FROM range(40) r(i)",
    "CREATE TABLE w (a INTEGER)",
    "CALL lake.set_option('data_inlining_row_limit', 10)",
    "DELETE FROM t WHERE i IN (110, 111)",
    "INSERT INTO w VALUES (1), (2), (3)",
    "DELETE FROM w WHERE a = 2",
    "ALTER TABLE w ADD COLUMN b INTEGER",
    "INSERT INTO w VALUES (4, 4), (5, 5)",
    "CREATE VIEW v AS SELECT i FROM t",
    "CREATE SCHEMA other",
    "CREATE MACRO m(x) AS x + 1",
    "COMMENT ON TABLE t IS 'a comment'",
)


def uri(folder: Path) -> str:
    return f"ducklake:{folder}/lake.ducklake"


def make(folder: Path, maker: str, reference: duckdb.DuckDBPyConnection) -> None:
    """Makes the lake by one of the two clients."""
    (folder / "data").mkdir(parents=True)
    if maker == "ours":
        with dl.connect(uri(folder), "lake", data_path=f"{folder}/data", engine="duckdb") as session:
            for statement in SCRIPT:
                session.sql(statement)
        return
    reference.execute(f"ATTACH '{uri(folder)}' AS lake (DATA_PATH '{folder}/data'); USE lake")
    for statement in SCRIPT:
        reference.execute(statement)
    reference.execute("USE memory; DETACH lake")


def copy(source: Path, target: Path) -> None:
    """Copies a lake, whose files stay below its own data path."""
    shutil.copytree(source, target)
    with duckdb.connect(f"{target}/lake.ducklake") as catalog:
        catalog.execute(f"UPDATE ducklake_metadata SET value = '{target}/data/' WHERE key = 'data_path'")


def states(run: Callable[[str], list[Any]], snapshots: range) -> dict[tuple[str, int], object]:
    """The rows of each table at each snapshot, with their ids, and their number as count(*) says."""
    found: dict[tuple[str, int], object] = {}
    for table in TABLES:
        for at in snapshots:
            source = f"{table} AT (VERSION => {at})"
            try:
                rows = run(f"SELECT rowid, * FROM {source} ORDER BY ALL")
                found[table, at] = rows, run(f"SELECT count(*) FROM {source}")
            except (duckdb.Error, dl.DuckLakeError) as error:
                found[table, at] = "absent" if "not exist" in str(error) or "no table" in str(error) else str(error)
    return found


def read_both(
    folder: Path, reference: duckdb.DuckDBPyConnection, snapshots: range
) -> dict[str, dict[tuple[str, int], object]]:
    """The states that each client reads."""
    with dl.connect(uri(folder), "lake", engine="duckdb") as session:
        ours = states(lambda sql: session.sql(sql).fetchall(), snapshots)
    reference.execute(f"ATTACH '{uri(folder)}' AS lake; USE lake")
    try:
        theirs = states(lambda sql: reference.execute(sql).fetchall(), snapshots)
    finally:
        reference.execute("USE memory; DETACH lake")
    return {"ours": ours, "theirs": theirs}


@dataclass(frozen=True)
class Fault:
    """Damage of one kind.

    Attributes:
        check: the check that finds it.
        sql: statements over the catalog, or files that are changed by a function of the lake's folder.
        since: a query for the snapshot that the finding names, asked before the damage; None for no snapshot.
        mends: a repair makes the lake what it was; otherwise the repair says why there is none.
        deep: only footers or rows show it.
    """

    check: str
    sql: str = ""
    since: str | None = None
    mends: bool = True
    deep: bool = False
    files: Callable[[Path], None] | None = None

    def seed(self, folder: Path) -> int | None:
        with duckdb.connect(f"{folder}/lake.ducklake") as catalog:
            row = catalog.execute(self.since).fetchone() if self.since is not None else None
            for statement in filter(None, (part.strip() for part in self.sql.split(";"))):
                catalog.execute(statement)
        if self.files is not None:
            self.files(folder)
        return row[0] if row is not None else None


_T = "(SELECT min(table_id) FROM ducklake_table WHERE table_name = 't')"
_U = "(SELECT min(table_id) FROM ducklake_table WHERE table_name = 'u')"
_W = "(SELECT min(table_id) FROM ducklake_table WHERE table_name = 'w')"
_F = f"(SELECT min(data_file_id) FROM ducklake_data_file WHERE table_id = {_T})"
_G = f"(SELECT max(data_file_id) FROM ducklake_data_file WHERE table_id = {_T})"
_D = "(SELECT max(delete_file_id) FROM ducklake_delete_file)"
_D_FIRST = "(SELECT min(delete_file_id) FROM ducklake_delete_file)"
_N = "(SELECT max(snapshot_id) FROM ducklake_snapshot)"
_BEGIN_F = f"SELECT begin_snapshot FROM ducklake_data_file WHERE data_file_id = {_F}"
_BEGIN_G = f"SELECT begin_snapshot FROM ducklake_data_file WHERE data_file_id = {_G}"
_BEGIN_D = f"SELECT begin_snapshot FROM ducklake_delete_file WHERE delete_file_id = {_D}"
_MARKS = "(SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'ducklake_inlined_delete_%')"


def _unkeyed(table: str) -> str:
    return f"CREATE TABLE copied AS FROM {table}; DROP TABLE {table}; ALTER TABLE copied RENAME TO {table}"


def _file(folder: Path, suffix: str = ".parquet", table: str = "t", *, deletes: bool = False) -> Path:
    """The first data file of a table, or its last delete file."""
    with duckdb.connect(f"{folder}/lake.ducklake", read_only=True) as catalog:
        kind, key, order = (
            ("ducklake_delete_file", "delete_file_id", "DESC")
            if deletes
            else ("ducklake_data_file", "data_file_id", "")
        )
        row = catalog.execute(
            f"SELECT path FROM {kind} WHERE table_id = (SELECT min(table_id) FROM ducklake_table WHERE table_name = '{table}') "
            f"ORDER BY {key} {order} LIMIT 1"
        ).fetchone()
    assert row is not None
    return folder / "data" / "main" / table / str(row[0])


def _remove(folder: Path) -> None:
    _file(folder).unlink()


def _remove_deletes(folder: Path) -> None:
    _file(folder, deletes=True).unlink()


def _cut(folder: Path) -> None:
    path = _file(folder)
    path.write_bytes(path.read_bytes()[:-20])


def _other_rows(folder: Path) -> None:
    path = _file(folder)
    duckdb.execute(f"COPY (SELECT * FROM '{path}' LIMIT 50) TO '{path}.new' (FORMAT parquet)")
    Path(f"{path}.new").replace(path)


def _append_to_deletes(folder: Path) -> None:
    """A delete file that names a row which is not there."""
    path = _file(folder, deletes=True)
    ids = {"file_path": 2147483646, "pos": 2147483645, "_ducklake_internal_snapshot_id": 2147483539}
    fields = {str(name): ids[name] for name, *_ in duckdb.sql(f"FROM '{path}'").description}
    positions = "FROM src UNION ALL SELECT * REPLACE (5000 AS pos) FROM src WHERE pos = 0"
    duckdb.execute(
        f"COPY (WITH src AS (FROM '{path}') {positions}) TO '{path}.new' (FORMAT parquet, FIELD_IDS {fields})"
    )
    Path(f"{path}.new").replace(path)
    with duckdb.connect(f"{folder}/lake.ducklake") as catalog:
        catalog.execute(
            f"UPDATE ducklake_delete_file SET file_size_bytes = {path.stat().st_size}, delete_count = delete_count + 1, "
            f"footer_size = {int.from_bytes(path.read_bytes()[-8:-4], 'little')} WHERE delete_file_id = {_D}"
        )


def _orphan(folder: Path) -> None:
    shutil.copy(_file(folder), folder / "data" / "main" / "t" / "ducklake-nobody.parquet")


def _faults() -> Iterator[Fault]:
    # files
    yield Fault("data_file_missing", since=_BEGIN_F, mends=False, files=_remove)
    yield Fault("data_file_size", since=_BEGIN_F, mends=False, files=_cut)
    yield Fault(
        "data_file_size", f"UPDATE ducklake_data_file SET file_size_bytes = 77 WHERE data_file_id = {_F}", _BEGIN_F
    )
    yield Fault(
        "impossible_counts", f"UPDATE ducklake_data_file SET record_count = -3 WHERE data_file_id = {_F}", _BEGIN_F
    )
    yield Fault(
        "impossible_counts", f"UPDATE ducklake_data_file SET footer_size = 9999999 WHERE data_file_id = {_F}", _BEGIN_F
    )
    yield Fault(
        "file_format_unknown", f"UPDATE ducklake_data_file SET file_format = 'orc' WHERE data_file_id = {_F}", _BEGIN_F
    )
    yield Fault(
        "file_of_no_table",
        f"UPDATE ducklake_data_file SET table_id = 999 WHERE data_file_id = {_F}",
        _BEGIN_F,
        mends=False,
    )
    yield Fault(
        "file_in_two_tables",
        "INSERT INTO ducklake_data_file BY NAME SELECT * REPLACE (4000 AS data_file_id, "
        f"{_U} AS table_id, (SELECT value FROM ducklake_metadata WHERE key = 'data_path') || 'main/t/' || path AS path, "
        f"false AS path_is_relative, NULL AS row_id_start) FROM ducklake_data_file WHERE data_file_id = {_F}",
        f"SELECT begin_snapshot FROM ducklake_data_file WHERE data_file_id = {_F}",
        mends=False,
    )
    yield Fault(
        "file_twice",
        "INSERT INTO ducklake_data_file BY NAME SELECT * REPLACE (4000 AS data_file_id) FROM ducklake_data_file "
        f"WHERE data_file_id = {_F}",
        _BEGIN_F,
    )
    yield Fault(
        "live_file_scheduled_for_deletion",
        "INSERT INTO ducklake_files_scheduled_for_deletion SELECT data_file_id, 'main/t/' || path, true, now() "
        f"FROM ducklake_data_file WHERE data_file_id = {_F}",
        _BEGIN_F,
    )
    yield Fault(
        "mapping_missing",
        f"UPDATE ducklake_data_file SET mapping_id = 88 WHERE data_file_id = {_F}",
        _BEGIN_F,
        mends=False,
    )
    yield Fault(
        "partition_values_differ",
        f"DELETE FROM ducklake_file_partition_value WHERE table_id = {_U}",
        f"SELECT min(begin_snapshot) FROM ducklake_data_file WHERE table_id = {_U}",
        mends=False,
    )
    yield Fault(
        "rows_of_other_partition",
        f"UPDATE ducklake_file_partition_value SET partition_value = 'p9' WHERE table_id = {_U} AND partition_value = 'p1'",
        f"SELECT min(begin_snapshot) FROM ducklake_data_file WHERE table_id = {_U}",
        mends=False,
        deep=True,
    )
    # deletions
    yield Fault("delete_file_missing", since=_BEGIN_D, mends=False, files=_remove_deletes)
    yield Fault(
        "delete_file_size", f"UPDATE ducklake_delete_file SET file_size_bytes = 7 WHERE delete_file_id = {_D}", _BEGIN_D
    )
    yield Fault(
        "delete_file_of_no_file",
        "INSERT INTO ducklake_delete_file BY NAME SELECT * REPLACE (4000 AS delete_file_id, 3999 AS data_file_id) "
        f"FROM ducklake_delete_file WHERE delete_file_id = {_D}",
        _BEGIN_D,
        mends=False,
    )
    yield Fault(
        "delete_file_of_other_table",
        f"UPDATE ducklake_delete_file SET table_id = {_U} WHERE delete_file_id = {_D}",
        _BEGIN_D,
    )
    yield Fault(
        "overlapping_delete_files",
        "INSERT INTO ducklake_delete_file BY NAME SELECT * REPLACE (4000 AS delete_file_id) FROM ducklake_delete_file "
        f"WHERE delete_file_id = {_D}",
        _BEGIN_D,
    )
    yield Fault(
        "deletions_end_early",
        f"UPDATE ducklake_delete_file SET end_snapshot = {_N} WHERE delete_file_id = {_D}",
        f"SELECT {_N}",
    )
    yield Fault(
        "more_deletions_than_rows",
        f"UPDATE ducklake_delete_file SET delete_count = 5000 WHERE delete_file_id = {_D}",
        _BEGIN_D,
    )
    yield Fault(
        "delete_format_unknown",
        f"UPDATE ducklake_delete_file SET format = 'avro' WHERE delete_file_id = {_D}",
        _BEGIN_D,
    )
    yield Fault(
        "inlined_deletion_twice",
        "INSERT INTO {marks} SELECT * REPLACE (begin_snapshot + 1 AS begin_snapshot) FROM {marks} LIMIT 1",
        "SELECT min(begin_snapshot) + 1 FROM {marks}",
    )
    yield Fault("inlined_deletion_outside", f"INSERT INTO {{marks}} VALUES ({_G}, 700, {_N})", f"SELECT {_N}")
    yield Fault("inlined_deletions_of_no_file", f"INSERT INTO {{marks}} VALUES (3999, 7, {_N})", mends=False)
    yield Fault(
        "inlined_deletion_of_other_table",
        f"INSERT INTO {{marks}} VALUES ((SELECT min(data_file_id) FROM ducklake_data_file WHERE table_id = {_U}), 3, {_N})",
        f"SELECT {_N}",
        mends=False,
    )
    yield Fault("deletion_in_two_places", f"INSERT INTO {{marks}} VALUES ({_F}, 3, {_N})", f"SELECT {_N}")
    # row ids
    yield Fault(
        "row_ids_twice",
        f"UPDATE ducklake_data_file SET row_id_start = 0 WHERE data_file_id = {_G}",
        _BEGIN_G,
        mends=False,
    )
    # a file that begins with deletions, of fewer rows than would make room for those that the other file has
    twin = (
        f"INSERT INTO ducklake_data_file SELECT * REPLACE (3500 AS data_file_id, {_N} - 1 AS begin_snapshot) FROM "
        f"ducklake_data_file WHERE data_file_id = {_F}; INSERT INTO ducklake_delete_file SELECT * REPLACE (3501 AS delete_file_id, "
        f"3500 AS data_file_id, {_N} - 1 AS begin_snapshot) FROM ducklake_delete_file WHERE delete_file_id = {_D}"
    )
    yield Fault("row_ids_twice", twin, f"SELECT {_N} - 1", mends=False)
    # the catalog says that there is room, and the files are seen together before the newest snapshot alone
    yield Fault(
        "row_id_twice",
        f"{twin}; UPDATE ducklake_delete_file SET delete_count = 95 WHERE delete_file_id = 3501; "
        f"UPDATE ducklake_data_file SET end_snapshot = {_N} WHERE data_file_id = {_F}",
        f"SELECT {_N} - 1",
        mends=False,
        deep=True,
    )
    yield Fault("next_row_id_too_small", f"UPDATE ducklake_table_stats SET next_row_id = 150 WHERE table_id = {_T}")
    yield Fault("table_stats_missing", f"DELETE FROM ducklake_table_stats WHERE table_id = {_T}", _BEGIN_F)
    yield Fault(
        "table_stats_twice",
        f"INSERT INTO ducklake_table_stats SELECT table_id, 3, 3, 3 FROM ducklake_table_stats WHERE table_id = {_T}",
    )
    yield Fault(
        "table_stats_of_no_table", "INSERT INTO ducklake_table_stats SELECT view_id, 1, 1, 1 FROM ducklake_view"
    )
    yield Fault(
        "inlined_row_twice",
        "INSERT INTO {inlined} SELECT * FROM {inlined} WHERE end_snapshot IS NULL LIMIT 1",
        "SELECT min(begin_snapshot) FROM {inlined}",
        mends=False,
    )
    # statistics
    stats = f"data_file_id = {_F} AND column_id = (SELECT min(column_id) FROM ducklake_column WHERE table_id = {_T})"
    table = f"table_id = {_T} AND column_id = (SELECT min(column_id) FROM ducklake_column WHERE table_id = {_T})"
    texts = (
        f"data_file_id = {_F} AND column_id = (SELECT max(column_id) - 1 FROM ducklake_column WHERE table_id = {_T})"
    )
    yield Fault("bounds_reversed", f"UPDATE ducklake_file_column_stats SET min_value = '5000' WHERE {stats}", _BEGIN_F)
    yield Fault("bounds_reversed", f"UPDATE ducklake_file_column_stats SET max_value = 'a' WHERE {texts}", _BEGIN_F)
    yield Fault(
        "table_bounds_exclude_file", f"UPDATE ducklake_table_column_stats SET max_value = '120' WHERE {table}", _BEGIN_G
    )
    yield Fault(
        "nulls_denied",
        f"UPDATE ducklake_table_column_stats SET contains_null = false WHERE table_id = {_T}",
        _BEGIN_G,
    )
    yield Fault("value_counts_differ", f"UPDATE ducklake_file_column_stats SET null_count = 40 WHERE {stats}", _BEGIN_F)
    yield Fault(
        "file_stats_twice",
        f"INSERT INTO ducklake_file_column_stats SELECT * FROM ducklake_file_column_stats WHERE {stats}",
        _BEGIN_F,
    )
    yield Fault(
        "table_column_stats_twice",
        f"INSERT INTO ducklake_table_column_stats SELECT * FROM ducklake_table_column_stats WHERE {table}",
    )
    yield Fault(
        "file_stats_of_other_table",
        f"UPDATE ducklake_file_column_stats SET table_id = {_U} WHERE data_file_id = {_F}",
        _BEGIN_F,
    )
    yield Fault(
        "stats_of_no_file",
        "INSERT INTO ducklake_file_column_stats SELECT * REPLACE (3999 AS data_file_id) FROM ducklake_file_column_stats LIMIT 1",
    )
    yield Fault(
        "bounds_exclude_rows",
        f"UPDATE ducklake_file_column_stats SET max_value = '50' WHERE {stats}",
        _BEGIN_F,
        deep=True,
    )
    yield Fault(
        "counts_exclude_rows",
        f"UPDATE ducklake_file_column_stats SET null_count = 1, value_count = value_count - 1 WHERE {stats}",
        _BEGIN_F,
        deep=True,
    )
    # snapshots and ids
    yield Fault(
        "snapshot_twice",
        _unkeyed("ducklake_snapshot")
        + f"; INSERT INTO ducklake_snapshot FROM ducklake_snapshot WHERE snapshot_id = {_N}",
        f"SELECT {_N}",
    )
    yield Fault(
        "snapshot_changes_twice",
        _unkeyed("ducklake_snapshot_changes")
        + f"; INSERT INTO ducklake_snapshot_changes FROM ducklake_snapshot_changes WHERE snapshot_id = {_N}",
        f"SELECT {_N}",
    )
    yield Fault("snapshot_changes_missing", "DELETE FROM ducklake_snapshot_changes WHERE snapshot_id = 4", "SELECT 4")
    yield Fault(
        "changes_of_no_snapshot",
        f"INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made) VALUES ({_N} + 1, '')",
    )
    yield Fault("next_file_id_too_small", f"UPDATE ducklake_snapshot SET next_file_id = 1 WHERE snapshot_id = {_N}")
    yield Fault(
        "next_catalog_id_too_small", f"UPDATE ducklake_snapshot SET next_catalog_id = 1 WHERE snapshot_id = {_N}"
    )
    yield Fault("counters_go_back", "UPDATE ducklake_snapshot SET next_file_id = 5000 WHERE snapshot_id = 3")
    yield Fault(
        "time_goes_back",
        "UPDATE ducklake_snapshot SET snapshot_time = TIMESTAMPTZ '2001-01-01' WHERE snapshot_id = 5",
        "SELECT 5",
        mends=False,
    )
    yield Fault(
        "schema_version_goes_back",
        f"UPDATE ducklake_snapshot SET schema_version = 0 WHERE snapshot_id = {_N}",
        f"SELECT {_N}",
        mends=False,
    )
    yield Fault(
        "schema_version_missing",
        f"DELETE FROM ducklake_schema_versions WHERE table_id = {_T}",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_T}",
    )
    yield Fault(
        "schema_version_of_change_missing",
        "DELETE FROM ducklake_schema_versions WHERE table_id = {w} AND begin_snapshot > "
        "(SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {w})",
        "SELECT max(begin_snapshot) FROM ducklake_column WHERE table_id = {w}",
    )
    yield Fault(
        "schema_version_twice",
        f"INSERT INTO ducklake_schema_versions SELECT * FROM ducklake_schema_versions WHERE table_id = {_T}",
        f"SELECT min(begin_snapshot) FROM ducklake_schema_versions WHERE table_id = {_T}",
    )
    yield Fault("schema_version_of_no_table", "INSERT INTO ducklake_schema_versions VALUES (1, 1, 999)")
    yield Fault("id_of_two_entries", f"UPDATE ducklake_view SET view_id = {_T}", mends=False)
    yield Fault(
        "file_id_twice",
        _unkeyed("ducklake_data_file")
        + f"; UPDATE ducklake_data_file SET data_file_id = {_F} WHERE data_file_id = {_G}",
        _BEGIN_F,
        mends=False,
    )
    yield Fault("option_twice", "INSERT INTO ducklake_metadata FROM ducklake_metadata WHERE key = 'encrypted'")
    # entries
    yield Fault(
        "versions_overlap",
        "UPDATE ducklake_table SET end_snapshot = NULL WHERE table_id = {t}; INSERT INTO ducklake_table BY NAME "
        "SELECT * REPLACE (6 AS begin_snapshot) FROM ducklake_table WHERE table_id = {t}",
        "SELECT 6",
    )
    yield Fault(
        "version_twice",
        f"INSERT INTO ducklake_column SELECT * FROM ducklake_column WHERE table_id = {_T} LIMIT 1",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_T}",
    )
    yield Fault(
        "name_twice",
        f"UPDATE ducklake_table SET table_name = 't' WHERE table_id = {_W}",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_W}",
        mends=False,
    )
    yield Fault(
        "name_twice",
        "INSERT INTO ducklake_macro BY NAME SELECT * REPLACE (9000 AS macro_id) FROM ducklake_macro",
        "SELECT max(begin_snapshot) FROM ducklake_macro",
        mends=False,
    )
    yield Fault(
        "begins_in_the_future",
        f"UPDATE ducklake_macro SET begin_snapshot = {_N} + 2",
        mends=False,
    )
    yield Fault(
        "entry_of_ended_schema",
        "UPDATE ducklake_macro SET schema_id = (SELECT schema_id FROM ducklake_schema WHERE schema_name = 'other'); "
        f"UPDATE ducklake_schema SET end_snapshot = {_N} WHERE schema_name = 'other'",
        f"SELECT {_N}",
        mends=False,
    )
    yield Fault(
        "file_of_ended_table",
        f"UPDATE ducklake_table SET end_snapshot = {_N} WHERE table_id = {_U}",
        f"SELECT {_N}",
        mends=False,
    )
    yield Fault(
        "tag_twice",
        "INSERT INTO ducklake_tag BY NAME SELECT * REPLACE ('other' AS value) FROM ducklake_tag",
        "SELECT max(begin_snapshot) FROM ducklake_tag",
        mends=False,
    )
    yield Fault(
        "type_unknown",
        f"UPDATE ducklake_column SET column_type = 'int31' WHERE table_id = {_W} AND column_name = 'b'",
        f"SELECT begin_snapshot FROM ducklake_column WHERE table_id = {_W} AND column_name = 'b'",
        mends=False,
    )
    yield Fault(
        "column_name_twice",
        f"UPDATE ducklake_column SET column_name = 'S' WHERE table_id = {_T} AND column_name = 'f'",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_T}",
        mends=False,
    )
    yield Fault(
        "entry_of_no_schema",
        f"UPDATE ducklake_table SET schema_id = 999 WHERE table_id = {_W}",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_W}",
        mends=False,
    )
    yield Fault(
        "table_without_columns",
        f"DELETE FROM ducklake_column WHERE table_id = {_U}",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_U}",
        mends=False,
    )
    yield Fault(
        "columns_of_no_table",
        "UPDATE ducklake_column SET table_id = 999 WHERE table_id = {u} AND column_name = 'p'",
        mends=False,
    )
    yield Fault(
        "column_of_no_parent",
        "UPDATE ducklake_column SET parent_column = 77 WHERE table_id = {u} AND column_name = 'p'",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_U}",
        mends=False,
    )
    yield Fault(
        "interval_reversed",
        f"UPDATE ducklake_data_file SET end_snapshot = begin_snapshot - 1 WHERE data_file_id = {_F}",
        _BEGIN_F,
        mends=False,
    )
    yield Fault(
        "ends_in_the_future",
        f"UPDATE ducklake_data_file SET end_snapshot = {_N} + 3 WHERE data_file_id = {_F}",
        _BEGIN_F,
    )
    yield Fault(
        "begins_in_the_future",
        "INSERT INTO ducklake_data_file BY NAME SELECT * REPLACE (4000 AS data_file_id, 'other.parquet' AS path, "
        f"{_N} + 2 AS begin_snapshot, 5000 AS row_id_start) FROM ducklake_data_file WHERE data_file_id = {_F}",
        mends=False,
    )
    yield Fault(
        "two_partitionings",
        f"INSERT INTO ducklake_partition_info VALUES (900, {_U}, {_N}, NULL); "
        "INSERT INTO ducklake_partition_column SELECT 900, table_id, partition_key_index, column_id, transform "
        f"FROM ducklake_partition_column; UPDATE ducklake_snapshot SET next_catalog_id = 901 WHERE snapshot_id = {_N}",
        f"SELECT {_N}",
    )
    yield Fault(
        "partition_key_of_no_column",
        "UPDATE ducklake_partition_column SET column_id = 900",
        f"SELECT min(begin_snapshot) FROM ducklake_partition_info WHERE table_id = {_U}",
        mends=False,
    )
    # inlined rows
    yield Fault(
        "inlined_table_missing",
        "DROP TABLE {inlined}",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_W}",
        mends=False,
    )
    yield Fault(
        "inlined_table_unnamed",
        "DELETE FROM ducklake_inlined_data_tables WHERE table_name = '{inlined}'",
        "SELECT min(begin_snapshot) FROM {inlined}",
    )
    yield Fault(
        "inlined_table_of_no_table",
        "INSERT INTO ducklake_inlined_data_tables VALUES (999, 'ducklake_inlined_data_999_1', 1)",
    )
    yield Fault(
        "inlined_table_twice",
        "INSERT INTO ducklake_inlined_data_tables FROM ducklake_inlined_data_tables WHERE table_name = '{inlined}'",
    )
    yield Fault(
        "inlined_columns_differ",
        "ALTER TABLE {inlined} DROP COLUMN a",
        "SELECT max(begin_snapshot) FROM ducklake_schema_versions WHERE table_id = {w} AND schema_version = "
        "(SELECT max(schema_version) FROM ducklake_inlined_data_tables WHERE table_id = {w})",
        mends=False,
    )
    yield Fault(
        "inlined_interval_reversed",
        "UPDATE {inlined} SET end_snapshot = begin_snapshot - 1",
        "SELECT min(begin_snapshot) FROM {inlined}",
        mends=False,
    )
    yield Fault(
        "inlined_row_without_id",
        "UPDATE {inlined} SET row_id = NULL",
        "SELECT min(begin_snapshot) FROM {inlined}",
        mends=False,
    )
    yield Fault(
        "inlined_row_ends_in_the_future",
        f"UPDATE {{inlined}} SET end_snapshot = {_N} + 2",
        "SELECT min(begin_snapshot) FROM {inlined}",
    )
    yield Fault(
        "inlined_row_begins_in_the_future",
        f"INSERT INTO {{inlined}} SELECT * REPLACE ({_N} + 2 AS begin_snapshot, row_id + 0 AS row_id) FROM {{inlined}} WHERE false; "
        f"UPDATE {{inlined}} SET begin_snapshot = {_N} + 2",
        mends=False,
    )
    # paths and encryption
    yield Fault(
        "path_climbs", f"UPDATE ducklake_data_file SET path = '../t/' || path WHERE data_file_id = {_F}", _BEGIN_F
    )
    yield Fault(
        "path_marked_relative",
        "UPDATE ducklake_data_file SET path = (SELECT value FROM ducklake_metadata WHERE key = 'data_path') || 'main/t/' || path "
        f"WHERE data_file_id = {_F}",
        _BEGIN_F,
    )
    yield Fault(
        "path_marked_absolute",
        f"UPDATE ducklake_data_file SET path_is_relative = false WHERE data_file_id = {_F}",
        _BEGIN_F,
    )
    yield Fault(
        "path_missing", f"UPDATE ducklake_data_file SET path = '' WHERE data_file_id = {_F}", _BEGIN_F, mends=False
    )
    yield Fault(
        "live_file_looks_orphaned",
        f"UPDATE ducklake_data_file SET path = './/' || path WHERE data_file_id = {_F}",
        _BEGIN_F,
    )
    yield Fault(
        "folder_without_slash",
        f"UPDATE ducklake_table SET path = rtrim(path, '/') WHERE table_id = {_T}",
        f"SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {_T}",
    )
    yield Fault(
        "data_path_odd",
        "UPDATE ducklake_metadata SET value = rtrim(value, '/') || '//' WHERE key = 'data_path'",
    )
    yield Fault(
        "plain_files_in_encrypted_lake",
        "UPDATE ducklake_metadata SET value = 'true' WHERE key = 'encrypted'",
        mends=False,
    )
    # contents
    yield Fault("data_file_size", since=_BEGIN_F, mends=False, files=_other_rows)
    yield Fault(
        "record_count_differs",
        f"UPDATE ducklake_data_file SET record_count = 98 WHERE data_file_id = {_F}",
        _BEGIN_F,
        deep=True,
    )
    yield Fault(
        "delete_count_differs",
        f"UPDATE ducklake_delete_file SET delete_count = 12 WHERE delete_file_id = {_D}",
        _BEGIN_D,
        deep=True,
    )
    yield Fault("deletions_outside", since=_BEGIN_D, deep=True, files=_append_to_deletes)
    # hygiene
    yield Fault("orphaned_files", mends=False, files=_orphan)


FAULTS = tuple(_faults())
