"""Facts about a lake that checks and repairs share, read once from its catalog."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import sqlalchemy as sa

from ducklake_lab.catalog import inlined_deletions, paths, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.below_sqlalchemy import run_text
from ducklake_lab.catalog.files import table_folders
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.model.quoting import quote_text, quoted_if_needed
from ducklake_lab.storage import Storage

Made = TypeVar("Made")
#: Larger than each id.
NEVER = 2**63 - 1
#: Names of tables of inlined rows.
_DATA_TABLE = re.compile(r"ducklake_inlined_data_(\d+)_(\d+)")
#: Texts of finite numbers.
_NUMBER = "^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$"
#: Types in which databases compare bounds as numbers.
_REAL = {"duckdb": "DOUBLE", "sqlite": "REAL", "postgresql": "DOUBLE PRECISION", "mysql": "DOUBLE"}


@dataclass(eq=False)
class Context:
    """A lake's catalog while one connection is open.

    Attributes:
        deep: footers and rows are read too.
        table_id: the only table that is asked for; None for all.
        is_preview: nothing is written, files neither.
    """

    lake: Lake
    connection: sa.Connection
    deep: bool = False
    table_id: int | None = None
    is_preview: bool = False
    storage: Storage = field(default_factory=Storage)
    _kept: dict[Callable[[Context], object], object] = field(default_factory=dict)

    def once(self, make: Callable[[Context], Made]) -> Made:
        """Return what a function makes of the context, which is called once."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return self._kept[make]  # type: ignore[return-value]

    @property
    def dialect(self) -> str:
        return self.connection.dialect.name

    @cached_property
    def snapshots(self) -> list[int]:
        """Ids of all snapshots, ascending."""
        ids = self.connection.execute(sa.select(t.snapshot.c.snapshot_id)).scalars()
        return sorted({int(one) for one in ids if one is not None})

    @property
    def newest(self) -> int:
        return self.snapshots[-1] if self.snapshots else 0

    @cached_property
    def delete_tables(self) -> dict[int, str]:
        """Tables of inlined deletions, by the id of their table."""
        return inlined_deletions.tables(self.connection, self.lake.database)

    @cached_property
    def data_tables(self) -> dict[str, tuple[int, int]]:
        """Tables of inlined rows that are there: the ids of their tables and schema versions, by name."""
        names = self.lake.database.tables_with_prefix(self.connection, "ducklake_inlined_data_")
        matches = ((name, _DATA_TABLE.fullmatch(name)) for name in names)
        return {name: (int(match[1]), int(match[2])) for name, match in matches if match is not None}

    @cached_property
    def registered(self) -> list[tuple[int, str, int]]:
        """Table, name and schema version of the tables of inlined rows that the catalog names."""
        i = t.inlined_data_tables.c
        rows = self.connection.execute(sa.select(i.table_id, i.table_name, i.schema_version)).all()
        return [(row[0], row[1], row[2]) for row in rows]

    @property
    def readable(self) -> list[tuple[int, str]]:
        """Table and name of the tables of inlined rows that are named and there, each once."""
        return list(dict.fromkeys((of, name) for of, name, _ in self.registered if name in self.data_tables))

    @property
    def inlined_columns(self) -> tuple[str, str, str]:
        return versions.of(self.connection).inlined_columns

    @cached_property
    def names(self) -> dict[int, str]:
        """`schema.table`, the newest names, by table id."""
        x, s = t.table.c, t.schema.c
        query = sa.select(x.table_id, s.schema_name, x.table_name).join_from(
            t.table, t.schema, s.schema_id == x.schema_id, isouter=True
        )
        return {
            table_id: f"{quoted_if_needed(schema or '?')}.{quoted_if_needed(name or '?')}"
            for table_id, schema, name in self.connection.execute(query.order_by(x.begin_snapshot))
        }

    @cached_property
    def folders(self) -> dict[int, str]:
        """Absolute folders of tables, dropped ones too."""
        return table_folders(self.connection, self.lake.data_path, list(self.names))

    @cached_property
    def options(self) -> dict[str, str]:
        """Options of the whole lake, as the catalog has them."""
        m = t.lake_metadata.c
        rows = self.connection.execute(sa.select(m.key, m.value).where(m.scope.is_(None)))
        return {str(key): str(value) for key, value in rows}

    @property
    def is_encrypted(self) -> bool:
        return self.options.get("encrypted", "").casefold() == "true"

    def place(self, table_id: int | None, path: str, relative: object) -> str:
        """Return the absolute path of a file of a table."""
        folder = self.folders.get(table_id, self.lake.data_path) if table_id is not None else self.lake.data_path
        return paths.resolve(folder, path, relative is not False and relative != 0)

    def rows(self, query: str) -> list[dict[str, object]]:
        """Run a query over the catalog's tables."""
        answer = run_text(self.connection, query)
        names = list(answer.keys())
        return [dict(zip(names, row, strict=True)) for row in answer]

    def tuples(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query over the catalog's tables, whose columns have a fixed order."""
        return [tuple(row) for row in run_text(self.connection, query)]

    def first_from(self, since: int | None) -> int | None:
        """Return the first snapshot there is from an id on; None where there is none."""
        at = bisect_left(self.snapshots, since if since is not None else -1)
        return self.snapshots[at] if at < len(self.snapshots) else None

    def last_before(self, until: int) -> int | None:
        """Return the last snapshot there is before an id; None where there is none."""
        at = bisect_left(self.snapshots, until)
        return self.snapshots[at - 1] if at else None

    # SQL that databases spell in their own ways

    def joined(self, *parts: str) -> str:
        """SQL of texts one after the other."""
        return f"concat({', '.join(parts)})" if self.dialect == "mysql" else f"({' || '.join(parts)})"

    def number(self, text: str) -> str:
        """SQL of a bound as a number; NULL for any other text, and for NaN and the infinities."""
        real = f"CAST({text} AS {_REAL[self.dialect]})"
        match self.dialect:
            case "duckdb":
                return f"CASE WHEN isfinite(TRY_{real}) THEN TRY_{real} END"
            case "postgresql":
                is_number = f"{text} ~ '{_NUMBER}'"
            case "mysql":
                is_number = f"{text} REGEXP '{_NUMBER}'"
            case _:
                # a plain client of SQLite has no regular expressions
                is_number = f"{text} GLOB '*[0-9]*' AND {text} NOT GLOB '*[^-+.0-9e]*'"
        return f"CASE WHEN {is_number} THEN {real} END"

    def plain(self, text: str) -> str:
        """SQL of a text that is compared by its bytes."""
        if self.dialect == "mysql":
            return f"CAST({text} AS BINARY)"
        return f'{text} COLLATE "C"' if self.dialect == "postgresql" else text

    def contains(self, text: str, part: str) -> str:
        """SQL that says whether a text contains another, with neither % nor _."""
        return f"{text} LIKE {quote_text(f'%{part}%')}"

    @property
    def places(self) -> str:
        """SELECT of all data and delete files: kind, id, table_id, place (absolute path) and their snapshots."""
        folders = (
            "SELECT x.table_id AS table_id, min("
            + self.inside("x", self.inside("s", quote_text(self.lake.data_path)))
            + ") AS folder FROM ducklake_table AS x JOIN ducklake_schema AS s ON s.schema_id = x.schema_id GROUP BY x.table_id"
        )
        parts = (
            f"SELECT '{kind}' AS kind, f.{key} AS id, f.table_id AS table_id, {self.inside('f', 'p.folder')} AS place, "
            f"f.begin_snapshot AS begin_snapshot, f.end_snapshot AS end_snapshot FROM {table} AS f "
            f"JOIN ({folders}) AS p ON p.table_id = f.table_id"
            for kind, table, key in (
                ("data file", "ducklake_data_file", "data_file_id"),
                ("delete file", "ducklake_delete_file", "delete_file_id"),
            )
        )
        return " UNION ALL ".join(parts)

    def inside(self, alias: str, folder: str) -> str:
        """SQL of a path below a folder, unless it is absolute."""
        path = f"coalesce({alias}.path, '')"
        return f"CASE WHEN {alias}.path_is_relative THEN {self.joined(folder, path)} ELSE {path} END"


def later(*values: str) -> str:
    """SQL of the largest of two ids that are not NULL."""
    one, other = values
    return f"CASE WHEN {one} >= {other} THEN {one} ELSE {other} END"


def sooner(*values: str) -> str:
    """SQL of the smallest of two ends; NULL is no end."""
    one, other = values
    return (
        f"CASE WHEN {one} IS NULL THEN {other} WHEN {other} IS NULL THEN {one} "
        f"WHEN {one} < {other} THEN {one} ELSE {other} END"
    )


def overlap(a: str, b: str) -> str:
    """SQL that says whether two rows hold at one snapshot at least."""
    return (
        f"{a}.begin_snapshot < coalesce({b}.end_snapshot, {NEVER}) AND {b}.begin_snapshot < coalesce({a}.end_snapshot, {NEVER})"
        f" AND {a}.begin_snapshot < coalesce({a}.end_snapshot, {NEVER})"
        f" AND {b}.begin_snapshot < coalesce({b}.end_snapshot, {NEVER})"
    )


NEWEST = "(SELECT max(snapshot_id) FROM ducklake_snapshot)"


def dead_condition(row_id: str, begin: str, end: str) -> str:
    """SQL that says whether no snapshot sees an inlined row that has ended.

    A row without an id or a begin, or that ends before it begins, is damaged: it may be the only copy.
    """
    return (
        f"{row_id} IS NOT NULL AND {begin} <= {end} AND {end} <= {NEWEST} AND NOT EXISTS "
        f"(SELECT 1 FROM ducklake_snapshot AS n WHERE n.snapshot_id >= {begin} AND n.snapshot_id < {end})"
    )
