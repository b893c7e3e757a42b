"""Replaces the rows for which a condition is true: `replaceWhere`."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ducklake_lab.engine.rows import InMemory, delete_positions
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.target import Target
from ducklake_lab.errors import ConstraintError
from ducklake_lab.files.options import WriteOptions, delete_options
from ducklake_lab.model.entries import Table
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.staged import FILE_ID, ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.sql.prune.spark_condition import exact_predicate
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Replaced:
    """A condition in Spark SQL on the rows of a table.

    Attributes:
        text: as it was given.
        predicate: true for the same rows.
    """

    text: str
    predicate: Predicate

    @classmethod
    def of(cls, text: str, table: Table) -> Replaced:
        """Reads a condition.

        Raises:
            UnsupportedFeatureError: it is more than comparisons of columns with constants.
        """
        return cls(text, exact_predicate(text, table.columns))

    def check(self, rows: pa.Table) -> None:
        """Raises ConstraintError where the condition is not true for a row."""
        others = f"SELECT 1 FROM rows WHERE ({_sql(self.predicate)}) IS NOT TRUE LIMIT 1"
        if InMemory(rows).query(others).arrow().num_rows:
            raise ConstraintError(f"A row does not meet replaceWhere: {self.text}. Write rows that do, or widen it.")

    def delete(self, transaction: Transaction, table: Table, folder: str, options: WriteOptions) -> None:
        """Stages the deletion of the table's committed rows for which the condition is true."""
        lake = transaction.lake
        with lake.connect() as connection:
            plan = plan_scan(lake, connection, transaction.base, table, predicate=self.predicate)
        places = ", ".join(map(quote_identifier, VIRTUAL_COLUMNS))
        query = f"SELECT {places} FROM rows WHERE {_sql(self.predicate)}"
        places_of_rows = Scan(plan, virtual=True).here().query(query).arrow().rename_columns(list(VIRTUAL_COLUMNS))
        inlined = places_of_rows.filter(pa.compute.is_null(places_of_rows.column(FILE_ID)))
        in_files = places_of_rows.filter(pa.compute.is_valid(places_of_rows.column(FILE_ID)))
        target = Target(
            table,
            folder,
            options,
            delete_options(transaction.options, table, lake.version),
            few=-1,
            can_inline=lambda _: False,
            sorted=None,
            next_snapshot=transaction.next_snapshot,
        )
        transaction.delete_inlined(table, inlined.column(ROW_ID).to_pylist())
        records = {file.data_file.data_file_id: file.data_file.record_count for file in plan.files}
        transaction.delete_from_files(table, delete_positions(in_files, target, plan), records)


def _sql(predicate: Predicate) -> str:
    """DuckDB's SQL of a predicate on top-level columns."""
    if isinstance(predicate, And | Or):
        word = " AND " if isinstance(predicate, And) else " OR "
        return "(" + word.join(map(_sql, predicate.terms)) + ")"
    column = quote_identifier(predicate.column[0])
    if isinstance(predicate, NullTest):
        return f"{column} IS {'' if predicate.is_null else 'NOT '}NULL"
    if isinstance(predicate, InList):
        return f"{column} IN ({', '.join(map(_literal, predicate.values))})"
    assert isinstance(predicate, Comparison)  # exact_predicate makes no others
    return f"{column} {predicate.op} {_literal(predicate.value)}"


def _literal(value: object) -> str:
    if isinstance(value, Moment):
        return f"CAST({quote_text(value.text())} AS {value.kind.upper()})"
    return quote_text(value) if isinstance(value, str) else str(value)
