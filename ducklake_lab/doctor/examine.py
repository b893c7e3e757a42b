"""Asks the checks of a lake, and says what their hits mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import sqlalchemy as sa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.doctor.check import SEVERITIES, Check, Finding, Row
from ducklake_lab.doctor.context import Context
from ducklake_lab.doctor.registry import CHECKS
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.quoting import quote_text, quoted_if_needed

#: Hits of one check that are listed.
MOST = 200
#: A name of a metadata table in SQL, with the texts and names in quotes that are no such names.
_TABLES = re.compile(
    r"'(?:[^']|'')*'|\"(ducklake_inlined_[a-z0-9_]+)\"|\"(?:[^\"]|\"\")*\"|(?<![.\w])(ducklake_[a-z0-9_]+)"
)
#: Beginnings of queries about the lake, whose hits have no table.
_OF_LAKE = ("SELECT NULL AS table_id", ", NULL AS table_id")


@dataclass(frozen=True, slots=True)
class Examination:
    """Findings of a lake, worst first.

    Attributes:
        checked: the number of checks that were asked.
        files: data files that the catalog names.
        tables: its tables.
        snapshots: its snapshots.
    """

    findings: tuple[Finding, ...]
    checked: int
    files: int
    tables: int
    snapshots: int


def examine(lake: Lake, table_id: int | None = None, *, deep: bool = False) -> Examination:
    """Ask all checks; nothing is changed.

    Args:
        table_id: only hits of this table.
        deep: read footers and rows too.
    """
    with lake.connect() as connection:
        context = Context(lake, connection, deep, table_id)
        asked = [check for check in CHECKS if deep or check.depth != "deep"]
        findings = [finding for check in asked for finding in _findings(context, check)]
        (counts,) = context.rows(
            "SELECT (SELECT count(*) FROM ducklake_data_file) AS files, "
            "(SELECT count(DISTINCT table_id) FROM ducklake_table) AS tables"
        )
        findings.sort(key=lambda one: SEVERITIES.index(one.severity))
        return Examination(
            tuple(findings), len(asked), int(str(counts["files"])), int(str(counts["tables"])), len(context.snapshots)
        )


def _findings(context: Context, check: Check) -> list[Finding]:
    try:
        rows = hits(context, check, MOST + 1)
        findings = [_finding(context, check, row) for row in rows[:MOST]]
        if len(rows) > MOST:
            findings.append(_more(context, check))
    # a damaged catalog may have texts where numbers belong
    except (DuckLakeError, sa.exc.SQLAlchemyError, duckdb.Error, TypeError, ValueError) as error:
        if context.connection.in_transaction():
            context.connection.rollback()
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        query = check.query(context) if check.query is not None else None
        evidence = _qualified(context, query) if query is not None else ""
        text = f"The check {check.name} cannot be asked: {reason}"
        return [Finding("error", "lake", text, evidence, None, "none: mend what keeps it from being asked", check.name)]
    return findings


def hits(context: Context, check: Check, most: int | None = None, key: Mapping[str, object] | None = None) -> list[Row]:
    """Ask one check.

    Args:
        most: hits that are wanted.
        key: only hits with these values.
    """
    if check.probe is not None:
        rows: Iterable[Row] = check.probe(context)
        if context.table_id is not None:
            rows = (row for row in rows if row["table_id"] == context.table_id)
        if key is not None:
            rows = (row for row in rows if all(row[name] == value for name, value in key.items()))
        return list(islice(rows, most))
    query = check.query(context) if check.query is not None else None
    if query is None or (context.table_id is not None and _is_of_lake(query)):
        return []
    return list(context.rows(_narrowed(context, check, query, key, most)))


def _is_of_lake(query: str) -> bool:
    first = query.partition(" FROM ")[0]
    return first.startswith(_OF_LAKE[0]) or _OF_LAKE[1] in first


def _narrowed(
    context: Context, check: Check, query: str, key: Mapping[str, object] | None, most: int | None = None
) -> str:
    """The query for some hits, in the order of their keys."""
    conditions = [_equals(name, value) for name, value in (key or {}).items()]
    if context.table_id is not None:
        conditions.append(f"table_id = {context.table_id:d}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = f" ORDER BY {', '.join(check.key)}" if check.key and key is None else ""
    limit = f" LIMIT {most:d}" if most is not None else ""
    return f"SELECT * FROM ({query}) AS found{where}{order}{limit}"


def _equals(name: str, value: object) -> str:
    if value is None:
        return f"{name} IS NULL"
    return f"{name} = {value:d}" if isinstance(value, int) else f"{name} = {quote_text(str(value))}"


def _more(context: Context, check: Check) -> Finding:
    if check.query is not None and (query := check.query(context)) is not None:
        where = f" WHERE table_id = {context.table_id:d}" if context.table_id is not None else ""
        counting = f"SELECT count(*) AS n FROM ({query}) AS found{where}"
        count = int(str(context.rows(counting)[0]["n"])) - MOST
        evidence, number = _qualified(context, counting), f"{count:,} more"
    else:
        evidence, number = "", "More"
    text = f"{number} like those of {check.name} above, of which {MOST} are listed."
    return Finding(check.severity, "lake", text, evidence, None, "see those above", check.name)


def _finding(context: Context, check: Check, row: Row) -> Finding:
    key = {name: row[name] for name in check.key}
    since, last = _span(context, row)
    severity = check.severity
    if check.harm in ("wrong", "fails") and since is None and row["since"] is not None:
        severity = "info"
    if check.query is not None:
        query = check.query(context)
        evidence = _qualified(context, _narrowed(replace(context, table_id=None), check, query or "", key))
    else:
        evidence = _qualified(context, str(row["evidence"]))
    repair = check.repair.text.format_map(_Shown(row)) if check.repair is not None else f"none: {check.reason}"
    return Finding(
        severity,
        _titled(context, check, row),
        f"{check.finding.format_map(_Shown(row))} {_harm(context, check, row, since, last)}",
        evidence,
        since,
        repair,
        check.name,
        last,
        check.repair is not None,
        key,
    )


class _Shown(dict[str, object]):
    """Values of a hit as texts of a message."""

    def __init__(self, row: Row) -> None:
        super().__init__({name: "none" if value is None else value for name, value in row.items()})


def _titled(context: Context, check: Check, row: Row) -> str:
    what = check.object.format_map(_Shown(row))
    table_id = row["table_id"]
    if table_id is None:
        return what
    return f"{context.names.get(int(str(table_id)), f'table {table_id}')}: {what}"


def _span(context: Context, row: Row) -> tuple[int | None, int | None]:
    """Return the first snapshot there is at which a hit shows, and the last one; None for the newest and for none."""
    since, until = row["since"], row["until"]
    if since is None:
        return None, None
    first = context.first_from(int(str(since)))
    if until is None or int(str(until)) > context.newest:
        return first, None
    last = context.last_before(int(str(until)))
    if first is None or last is None or last < first:
        return None, None
    return first, last


def _harm(context: Context, check: Check, row: Row, since: int | None, last: int | None) -> str:
    if check.harm == "none":
        return "Answers are right."
    if check.harm == "later":
        return "Answers are right today; a later commit or clean-up may change that."
    what = "Answers are wrong" if check.harm == "wrong" else "Reads fail"
    if row["since"] is None:
        return f"{what}."
    if since is None:
        return "No snapshot that is left shows it."
    if last is None:
        return f"{what} since snapshot {since}, today too."
    at = f"at snapshot {since}" if since == last else f"at snapshots {since} to {last}"
    return f"{what} {at}; today's are right." if check.harm == "wrong" else f"{what} {at}; those of today do not."


def _qualified(context: Context, query: str) -> str:
    """The query with the metadata database of the lake before each of its tables."""
    prefix = quoted_if_needed(context.lake.metadata_name)

    def qualified(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return f"{prefix}.{name}" if name else match[0]

    return _TABLES.sub(qualified, query)
