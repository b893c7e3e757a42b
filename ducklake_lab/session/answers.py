"""Answers of one query at several snapshots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.snapshots import read_history_of
from ducklake_lab.diff.answers import Answer, AnswerDiff, diff_answers
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.rows.result import Result
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse
from ducklake_lab.sql.planning.answer_keys import key_hints
from ducklake_lab.sql.planning.group_rows import group_rows

#: Rows of an answer from Spark that are compared at most, in process.
MOST_ROWS = 2_000_000


def compare_answers(
    lakes: Lakes,
    run: Callable[..., Result],
    query: str,
    start: At,
    end: At,
    key: Sequence[str],
    params: Mapping[str, object] | None,
) -> AnswerDiff:
    """Returns the diff of a query's answers at two snapshots of the current lake; see `Session.compare`.

    Args:
        run: runs a text, as `Session.sql` does.
    """
    lake, operation = lakes.get(), only_query(query, params)
    hints = key_hints(operation)
    answers = []
    for at in (start, end):
        snapshot = lakes.state(lake, at).snapshot
        result = run(query, params, at=snapshot.snapshot_id)
        rows = result.carried() if result.in_process else result.head(MOST_ROWS + 1)
        if not result.in_process and rows.num_rows > MOST_ROWS:
            raise UsageError(
                f"The answer at snapshot {snapshot.snapshot_id} has more than {MOST_ROWS:,} rows, too many to compare here; "
                "aggregate them, or diff the table."
            )
        check_reads(lake, {alias for alias, _ in result.info.snapshots})
        answers.append(Answer(info_of(lake, snapshot.snapshot_id), rows, hints.grouped, hints.computed))
    diff = diff_answers(query, answers[0], answers[1], key=key, time_zone=lake.session.time_zone())
    diff.groups = group_rows(operation)
    return diff


def only_query(text: str, params: Mapping[str, object] | None) -> op.Query:
    """Returns the query that a text is.

    Raises:
        UsageError: it is another statement, or several.
    """
    statements = parse(text, params, keep_refused=True)
    operation = statements[0].operation if len(statements) == 1 else None
    if not isinstance(operation, op.Query):
        raise UsageError("Only the answers of one query are compared; write one SELECT.")
    return operation


def check_reads(lake: Lake, aliases: Collection[str]) -> None:
    """Raises UsageError where a query reads other lakes alone, whose snapshots are not those that are meant."""
    if aliases and lake.alias not in aliases:
        raise UsageError(
            f"The query reads {', '.join(sorted(aliases))}, and the snapshots are those of the lake in use, {lake.alias}; "
            f"USE {sorted(aliases)[0]} first."
        )


def info_of(lake: Lake, snapshot_id: int) -> SnapshotInfo:
    """Returns a snapshot of a lake, its time in the session's zone."""
    with lake.connect() as connection:
        info = read_history_of(connection, snapshot_id)
    return replace(info, snapshot_time=lake.local(info.snapshot_time))
