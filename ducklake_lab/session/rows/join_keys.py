"""Join keys of small rows: predicates that skip files of a larger table, and queries for its rows with these keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.in_process import engine
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.engine.key_predicates import of_values
from ducklake_lab.engine.placement import Placing
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.files.reader import RowQuery
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import And, ColumnPath, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.sql.plan import JoinKey, QueryPlan


def small_side(rows: Rows, target: Scan, placing: Placing) -> ScanPlan | pa.Table | None:
    """Returns rows that are read first, to skip files of a larger table; None if they are too large."""
    if isinstance(rows, InMemory):
        return rows.table
    if not isinstance(rows, Scan):
        return None
    size = rows.plan.bytes_read
    return rows.plan if placing.is_small_side(size) and size < target.plan.bytes_read else None


def implied(
    keys: Iterable[JoinKey], small: Mapping[str, tuple[ScanPlan | pa.Table, Predicate | None]]
) -> Predicate | None:
    """Returns a predicate that all rows with matches in the small sources fulfil; None if none follows.

    Args:
        small: rows, or plans that are read in process, by view, each with the predicate on its relevant rows.
    """
    terms = [_of_key(key, *small[key.view]) for key in keys if key.view in small]
    implied_terms = [term for term in terms if term is not None]
    return And(tuple(implied_terms)) if implied_terms else None


def _of_key(key: JoinKey, side: ScanPlan | pa.Table, predicate: Predicate | None) -> Predicate | None:
    wanted = {key.other[0].casefold(), *(path[0].casefold() for path in paths_of(predicate))}
    # DuckDB distinguishes these names
    if isinstance(side, pa.Table):
        chosen = [name for name in side.column_names if name.casefold() in wanted]
        rows = side.select(chosen)
    else:
        columns = tuple(column for column in side.columns if column.name.casefold() in wanted)
        chosen = [column.name for column in columns]
        rows = local_reader.read(replace(side, table=replace(side.table, columns=columns))) if columns else None
    if len(chosen) < len(wanted):
        return None
    names = {name.casefold(): f"c{index}" for index, name in enumerate(chosen)}
    tables = {"t": rows.rename_columns(list(names.values()))}
    value = _sql(key.other, names)
    where = f"{value} IS NOT NULL" + (f" AND {condition_sql(predicate, names)}" if predicate is not None else "")
    distinct = engine.evaluate(f"SELECT DISTINCT {value} FROM t WHERE {where} ORDER BY 1", tables).column(0)
    return of_values(key.column, distinct)


def key_query(plan: QueryPlan, loaded: Mapping[str, Rows], time_zone: str) -> RowQuery | None:
    """Returns a query for workers over the changed table, for the rows whose join keys occur in rows in memory.

    None if there are no such keys, or files are not on this machine.
    """
    source = next((source for source in plan.sources if source.virtual and source.keys), None)
    rows = loaded.get(source.view) if source is not None else None
    if source is None or not isinstance(rows, Scan) or source.located or facts_of_rows([rows]).is_fetched:
        return None
    tables, conditions = [], []
    for number, key in enumerate(source.keys):
        other = loaded.get(key.view)
        if len(key.column) == len(key.other) == 1 and isinstance(other, InMemory):
            name = next((name for name, _ in other.columns if name.casefold() == key.other[0].casefold()), None)
            if name is not None:
                keys = other.query(f"SELECT DISTINCT {quote_identifier(name)} AS v FROM rows").arrow()
                tables.append((f"{source.view}_keys_{number}", keys))
                conditions.append(f"{quote_identifier(key.column[0])} IN (SELECT v FROM {tables[-1][0]})")
    if not conditions:
        return None
    sql = f"SELECT * FROM {quote_identifier(source.view)} WHERE {' AND '.join(conditions)}"
    return RowQuery(sql, source.view, tuple(rows.columns), time_zone, tuple(tables))


def paths_of(predicate: Predicate | None) -> list[ColumnPath]:
    """Returns the columns of a predicate, repeated ones too."""
    if predicate is None:
        return []
    if isinstance(predicate, And | Or):
        return [path for term in predicate.terms for path in paths_of(term)]
    return [predicate.column]


def _sql(path: ColumnPath, names: Mapping[str, str]) -> str:
    return ".".join([names[path[0].casefold()], *map(quote_identifier, path[1:])])


def condition_sql(predicate: Predicate, names: Mapping[str, str]) -> str:
    """Returns a predicate as DuckDB's SQL, with the names that columns have there, by their folded names."""
    if isinstance(predicate, And | Or):
        word = " AND " if isinstance(predicate, And) else " OR "
        return "(" + word.join(condition_sql(term, names) for term in predicate.terms) + ")"
    value = _sql(predicate.column, names)
    if isinstance(predicate, NullTest):
        return f"{value} IS {'' if predicate.is_null else 'NOT '}NULL"
    if isinstance(predicate, StartsWith):
        return f"starts_with({value}, {_literal(predicate.prefix)})"
    if isinstance(predicate, InList):
        return f"{value} IN ({', '.join(map(_literal, predicate.values))})" if predicate.values else "false"
    return f"{value} {predicate.op} {_literal(predicate.value)}"


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | Decimal):
        return f"({value:f})" if isinstance(value, Decimal) else f"({value})"
    if isinstance(value, float):
        return f"'{value!r}'::DOUBLE"
    if isinstance(value, bytes):
        return f"'{''.join(f'{chr(92)}x{byte:02X}' for byte in value)}'::BLOB"
    if isinstance(value, Moment):
        return f"'{value.text()}'::{value.kind.upper()}"
    return quote_text(str(value))
