"""Makes the lakes of older spec versions that the tests read: `python -m tests.old_lakes.make [FOLDER]`.

Every version is written by the client of its time, installed from PyPI into a folder of its own and run by history.py.
No client on PyPI writes 0.1 or 1.1-dev1: these two are made of 0.2 and 1.0, undoing and doing what lies between them.
The result, one small archive for each version, is kept in this folder.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

#: spec version -> the version of DuckDB and its extensions that writes it
WRITERS = {"0.2": "1.3.2", "0.3": "1.4.4", "0.4": "1.5.1", "1.0": "1.5.5"}
KINDS = ("duckdb", "sqlite")
FOLDER = Path(__file__).parent
#: Stands for the data path in the archives, which may be unpacked anywhere.
DATA_PATH = "@data_path@"

Execute = Callable[[str], list[tuple[object, ...]]]


def main(work: Path) -> None:
    for spec, client in WRITERS.items():
        site = work / f"client-{client}"
        if not site.exists():
            _install(site, client)
        lake = work / f"lake-{spec}"
        shutil.rmtree(lake, ignore_errors=True)
        lake.mkdir()
        for kind in KINDS:
            command = [sys.executable, "-S", str(FOLDER / "history.py"), str(site), kind, str(lake)]
            subprocess.run(command, check=True)
            with_catalog(lake, kind, _anonymous)
    _derive(work, "0.2", "0.1", _to_0_1)
    _derive(work, "1.0", "1.1-dev1", _to_1_1_dev1)
    for spec in ("0.1", "0.2", "0.3", "0.4", "1.1-dev1"):
        _pack(work / f"lake-{spec}", FOLDER / f"{spec}.tar.xz")


def _install(site: Path, client: str) -> None:
    extensions = [f"duckdb-extension-{name}=={client}" for name in ("ducklake", "sqlite-scanner")]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--target",
            site,
            "--no-deps",
            f"duckdb=={client}",
            "pytz",
            *extensions,
        ],
        check=True,
    )


def with_catalog(lake: Path, kind: str, change: Callable[[Execute], None]) -> None:
    """Calls a function with something that runs statements on a lake's catalog, and commits."""
    path = str(lake / f"{kind}.catalog")
    if kind == "sqlite":
        connection = sqlite3.connect(path)
        change(lambda statement: connection.execute(statement).fetchall())
        connection.commit()
        connection.close()
        return
    with duckdb.connect(path) as catalog:
        change(lambda statement: catalog.execute(statement).fetchall())


def _anonymous(execute: Execute) -> None:
    execute(f"UPDATE ducklake_metadata SET value = '{DATA_PATH}' WHERE key = 'data_path'")


def _derive(work: Path, source: str, spec: str, change: Callable[[Execute], None]) -> None:
    lake = work / f"lake-{spec}"
    shutil.rmtree(lake, ignore_errors=True)
    shutil.copytree(work / f"lake-{source}", lake)
    for kind in KINDS:
        with_catalog(lake, kind, change)


def _to_0_1(execute: Execute) -> None:
    """Files have their paths from the data path on, and partition keys are counted from 0."""
    for files in ("ducklake_data_file", "ducklake_delete_file"):
        execute(
            f"UPDATE {files} SET path = (SELECT s.path || t.path FROM ducklake_table t JOIN ducklake_schema s "
            f"ON s.schema_id = t.schema_id WHERE t.table_id = {files}.table_id LIMIT 1) || path"
        )
    execute("UPDATE ducklake_partition_column SET column_id = column_id - 1")
    for table, columns in {
        "ducklake_schema": ("path", "path_is_relative"),
        "ducklake_table": ("path", "path_is_relative"),
        "ducklake_metadata": ("scope", "scope_id"),
        "ducklake_data_file": ("mapping_id",),
    }.items():
        for column in columns:
            execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    execute("DROP TABLE ducklake_column_mapping")
    execute("DROP TABLE ducklake_name_mapping")
    execute("UPDATE ducklake_metadata SET value = '0.1' WHERE key = 'version'")


def _to_1_1_dev1(execute: Execute) -> None:
    for (name,) in execute("SELECT DISTINCT table_name FROM ducklake_inlined_data_tables"):
        for column in ("row_id", "begin_snapshot", "end_snapshot"):
            execute(f'ALTER TABLE "{name}" RENAME COLUMN {column} TO _ducklake_{column}')
    for table, column in (
        ("ducklake_data_file", "row_group_count BIGINT"),
        ("ducklake_delete_file", "row_group_count BIGINT"),
        ("ducklake_file_column_stats", "min_is_exact BOOLEAN"),
        ("ducklake_file_column_stats", "max_is_exact BOOLEAN"),
        ("ducklake_table_column_stats", "min_is_exact BOOLEAN"),
        ("ducklake_table_column_stats", "max_is_exact BOOLEAN"),
        ("ducklake_schema", "parent_schema_id BIGINT"),
    ):
        execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    execute(
        "CREATE TABLE ducklake_view_column_tag (view_id BIGINT, column_name VARCHAR, begin_snapshot BIGINT, "
        "end_snapshot BIGINT, key VARCHAR, value VARCHAR)"
    )
    execute("UPDATE ducklake_metadata SET value = '1.1-dev1' WHERE key = 'version'")


def _pack(lake: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:xz") as tar:
        for path in sorted(lake.rglob("*")):
            if path.is_file():
                tar.add(path, str(path.relative_to(lake)))
    print(f"{archive.name}: {archive.stat().st_size} bytes")


def unpack(spec: str, kind: str, target: Path) -> dict[str, dict[str, dict[str, list[object]]]]:
    """Unpacks a lake as `<target>/<kind>.catalog`; gives snapshot -> schema.table -> {columns, rows}."""
    shutil.unpack_archive(FOLDER / f"{spec}.tar.xz", target)
    data_path = f"{target}/{kind}.files/"
    with_catalog(
        target,
        kind,
        lambda execute: execute(f"UPDATE ducklake_metadata SET value = '{data_path}' WHERE key = 'data_path'") and None,
    )
    found: dict[str, dict[str, dict[str, list[object]]]] = json.loads((target / f"{kind}.json").read_text())[
        "snapshots"
    ]
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
