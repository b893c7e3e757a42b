"""Looks for rows that others changed since a snapshot, by predicates on them: in metadata and inlined rows, never in files.

A transaction asks this when it commits (ADR 118).
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from ducklake_lab.catalog import inlined, inlined_deletions, versions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.files import count_data_files
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.tables import one_of
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import Snapshot, Table
from ducklake_lab.model.predicates import Or, Predicate
from ducklake_lab.scan.column_history import history_of
from ducklake_lab.scan.planner import matching_files
from ducklake_lab.session.rows.join_keys import condition_sql, paths_of
from ducklake_lab.session.rows.matching_changes import is_compared_alike, read_by


def may_have_changed(
    lake: Lake,
    connection: sa.Connection,
    table: Table,
    base: Snapshot,
    new: Collection[Predicate | None],
    gone: Collection[Predicate | None],
) -> bool:
    """Returns whether a row inserted after a snapshot may fulfil one of `new`, or a deleted one one of `gone`.

    None stands for a predicate that all rows fulfil. Rows that maintenance wrote anew may count as inserted.
    """
    looking = _Looking(lake, connection, table, base)
    return looking.finds_new(new) or looking.finds_gone(gone)


class _Looking:
    """Looks for changes of one table after a snapshot."""

    def __init__(self, lake: Lake, connection: sa.Connection, table: Table, base: Snapshot) -> None:
        self._lake, self._connection, self._table, self._since = lake, connection, table, base.snapshot_id
        self._first_file_id = base.next_file_id
        _, self._begin, self._end = versions.of(connection).inlined_columns

    def finds_new(self, predicates: Collection[Predicate | None]) -> bool:
        f = t.data_file.c
        files = sa.or_(f.begin_snapshot > self._since, f.partial_max > self._since)
        return self._finds(predicates, files, self._begin)

    def finds_gone(self, predicates: Collection[Predicate | None]) -> bool:
        if not predicates:
            return False
        f, d = t.data_file.c, t.delete_file.c
        # a new delete file may begin before, so its id decides
        deleted = sa.select(d.data_file_id).where(
            d.table_id == self._table.table_id, d.delete_file_id >= self._first_file_id
        )
        conditions = [f.end_snapshot > self._since, f.data_file_id.in_(deleted)]
        ids = inlined_deletions.files_since(self._connection, self._lake.database, self._table.table_id, self._since)
        if ids:
            conditions.append(one_of(self._connection, f.data_file_id, ids))
        return self._finds(predicates, sa.or_(*conditions), self._end)

    def _finds(self, predicates: Collection[Predicate | None], files: sa.ColumnElement[bool], snapshot: str) -> bool:
        """Returns whether one of the files, or an inlined row by its later snapshot, may fulfil one of the predicates."""
        if not predicates:
            return False
        known = tuple(predicate for predicate in predicates if predicate is not None)
        if len(known) < len(predicates):
            return self._has_files(files) or self._has_rows(snapshot)
        predicate = Or(known)
        return self._may_match(files, predicate) or self._is_true_for_rows(snapshot, predicate)

    def _has_files(self, files: sa.ColumnElement[bool]) -> bool:
        return count_data_files(self._connection, self._table.table_id, files)[0] > 0

    def _may_match(self, files: sa.ColumnElement[bool], predicate: Predicate) -> bool:
        table, connection = self._table, self._connection
        history = history_of(table.columns, self._lake.column_versions(connection, table.table_id))
        return bool(matching_files(self._lake, connection, table, predicate, files, history))

    def _has_rows(self, snapshot: str) -> bool:
        condition = f"{snapshot} > {self._since:d}"
        return inlined.has_rows(self._connection, self._table.table_id, condition)

    def _is_true_for_rows(self, snapshot: str, predicate: Predicate) -> bool:
        if not is_compared_alike(self._table, predicate):
            return self._has_rows(snapshot)
        wanted = {path[0].casefold() for path in paths_of(predicate)}
        columns = [column for column in self._table.columns if column.name.casefold() in wanted]
        if len(columns) > len(wanted):
            return self._has_rows(snapshot)  # names that differ in case alone
        rows = inlined.read_rows(
            self._connection,
            self._lake.database,
            self._table.table_id,
            columns,
            f"{snapshot} > {self._since:d}",
            time_zone=self._lake.session.time_zone(),
        )
        if rows is None:
            return False
        read, names = read_by(rows, self._table, [predicate])
        found = engine.evaluate(f"SELECT count(*) FROM t WHERE {condition_sql(predicate, names)}", {"t": read})
        return bool(found.column(0)[0].as_py())
