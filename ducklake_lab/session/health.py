"""Finds tables whose files need maintenance, and the calls for it, from the catalog alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ducklake_lab.autopilot.plan import Need, flushes, mergeable, worn
from ducklake_lab.autopilot.policy import policy_of, scopes_of
from ducklake_lab.files.options import target_file_size
from ducklake_lab.hooks import hook
from ducklake_lab.model.quoting import quote_text, quoted_if_needed
from ducklake_lab.scan.file_stats import table_shapes
from ducklake_lab.session.listings import Listing
from ducklake_lab.session.names.attached_lakes import Lakes


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of one table, and the call that solves it.

    Attributes:
        table: `schema.table`.
        problem: a description of the problem.
        effect: the effect of the call, from its dry run.
        call: the SQL statement.
    """

    table: str
    problem: str
    effect: str
    call: str


class Health(Sequence[Finding]):
    """The findings of a check. Nothing has changed yet.

    Attributes:
        title: the table or lake that was checked.
        findings: one for each table and kind of problem.
    """

    def __init__(self, title: str, findings: Sequence[Finding], run: Callable[[str], object]) -> None:
        self.title = title
        self.findings = tuple(findings)
        self._run = run

    def apply(self) -> Listing:
        """Runs every call and lists the calls."""
        rows = []
        for finding in self.findings:
            self._run(finding.call)
            rows.append((finding.table, finding.call, finding.effect))
        return Listing(f"Maintenance of {self.title}", ("table", "ran", "effect"), rows, noun="call")

    def run(self, index: int) -> Any:
        """Runs the call of one finding and returns its result."""
        return self._run(self.findings[index].call)

    def __getitem__(self, index: Any) -> Any:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def _repr_html_(self) -> str:
        html: str = hook("health.html")(self)
        return html

    def __repr__(self) -> str:
        lines = [f"{one.table}: {one.problem}\n  {one.call}\n  {one.effect}" for one in self.findings]
        return "\n".join(lines) or f"{self.title}: nothing to mend."


def health_of(lakes: Lakes, table: str | None, run: Callable[[str], object]) -> Health:
    """Checks the files of a table, or of all tables of the current lake.

    Args:
        run: runs a maintenance call.
    """
    lake, only = lakes.get(), None
    if table is not None:
        named = lakes.parse(table)
        lake, state, only = named.lake, named.state, named.table().table_id
    else:
        state = lakes.state(lake)
    findings: list[Finding] = []
    with lake.connect() as connection:
        options = lake.options(connection)
        shapes = table_shapes(lake, connection, state.snapshot.snapshot_id, only)
    entries = [state.tables[table_id] for table_id in shapes if table_id in state.tables]
    for entry in sorted(entries, key=state.qualified_name):
        # what is too young for the autopilot is a finding too
        need = Need(
            entry,
            state.qualified_name(entry),
            shapes[entry.table_id],
            policy_of(options, scopes_of(entry)),
            target_file_size(options, entry),
            settled=state.snapshot.snapshot_id,
        )
        findings += _findings(lake.alias, state.schema_of(entry).name, need)
    return Health(table or lake.alias, findings, run)


def _findings(lake: str, schema: str, need: Need) -> Iterator[Finding]:
    """Yields the problems of one table, one for all its pieces of one step."""
    where = f"{quote_text(need.table.name)}, schema => {quote_text(schema)}"
    call, total, policy = f"CALL {quoted_if_needed(lake)}", len(need.shape.files), need.policy
    groups, files = mergeable(need), worn(need)
    if groups:
        small = [file for group in groups for file in group]
        yield Finding(
            need.name,
            f"{len(small):,} of {total:,} files can be merged: each is smaller than {policy.small:.0%} of the target size",
            f"about {len(small):,} files of {sum(file.bytes for file in small):,} bytes would become {len(groups):,}",
            f"{call}.merge_adjacent_files({where})",
        )
    if files:
        yield Finding(
            need.name,
            f"{len(files):,} of {total:,} files have at least {policy.deleted:.0%} of their rows deleted",
            f"{len(files):,} files of {sum(file.rows for file in files):,} rows would be written again without "
            f"{sum(file.deleted for file in files):,} deleted ones",
            f"{call}.rewrite_data_files({where}, delete_threshold => {policy.deleted})",
        )
    for one in flushes(need):
        named = f"schema_name => {quote_text(schema)}, table_name => {quote_text(need.table.name)}"
        yield Finding(
            need.name,
            f"{one.rows:,} rows are kept in the catalog",
            f"{one.rows:,} rows would be written to Parquet",
            f"{call}.flush_inlined_data({named})",
        )
