"""Finds tables whose files need maintenance, and the calls for it, from the catalog alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ducklake_lab.files.options import target_file_size
from ducklake_lab.hooks import hook
from ducklake_lab.model.quoting import quote_text, quoted_if_needed
from ducklake_lab.scan.file_stats import FileShape, TableShape, table_shapes
from ducklake_lab.session.listings import Listing
from ducklake_lab.session.names.attached_lakes import Lakes

#: A file smaller than this share of the target size is small; two small files of a partition can be merged.
SMALL = 0.25
#: A file with at least this share of deleted rows should be rewritten.
DELETED = 0.2
#: A table with at least this many inlined rows should be flushed: ten inserts of the default inlining limit.
INLINED = 100


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
        place = lakes.parse(table)
        lake, state, only = place.lake, place.state, place.table().table_id
    else:
        state = lakes.state(lake)
    findings = []
    with lake.connect() as connection:
        options = lake.options(connection)
        shapes = table_shapes(lake, connection, state.snapshot.snapshot_id, only)
    entries = [state.tables[table_id] for table_id in shapes if table_id in state.tables]
    for entry in sorted(entries, key=state.qualified_name):
        schema = state.schema_of(entry).name
        target = target_file_size(options, entry)
        findings += _findings(lake.alias, schema, entry.name, shapes[entry.table_id], target)
    return Health(table or lake.alias, findings, run)


def _findings(lake: str, schema: str, table: str, shape: TableShape, target_bytes: int) -> list[Finding]:
    """Returns the problems of one table.

    Args:
        shape: its data files and inlined rows at the newest snapshot.
        target_bytes: the target size of data files.
    """
    name = f"{schema}.{table}"
    where = f"{quote_text(table)}, schema => {quote_text(schema)}"
    findings = []
    files = shape.files
    groups: dict[object, list[FileShape]] = {}
    for file in files:
        if file.bytes < target_bytes * SMALL and not file.deleted:
            groups.setdefault(file.partition, []).append(file)
    many = [group for group in groups.values() if len(group) > 1]
    if many:
        count = sum(map(len, many))
        sizes = [sum(file.bytes for file in group) for group in many]
        after = sum(max(1, -(-size // max(target_bytes, 1))) for size in sizes)
        findings.append(
            Finding(
                name,
                f"{count:,} of {len(files):,} files can be merged: each is smaller than a quarter of the target size",
                f"about {count:,} files of {sum(sizes):,} bytes would become {after:,}",
                f"CALL {quoted_if_needed(lake)}.merge_adjacent_files({where})",
            )
        )
    worn = [file for file in files if file.deleted >= DELETED * max(file.rows, 1) and file.deleted]
    if worn:
        deleted = sum(file.deleted for file in worn)
        rows = sum(file.rows for file in worn)
        findings.append(
            Finding(
                name,
                f"{len(worn):,} of {len(files):,} files have at least {DELETED:.0%} of their rows deleted",
                f"{len(worn):,} files of {rows:,} rows would be written again without {deleted:,} deleted ones",
                f"CALL {quoted_if_needed(lake)}.rewrite_data_files({where}, delete_threshold => {DELETED})",
            )
        )
    if shape.inlined_rows >= INLINED:
        findings.append(
            Finding(
                name,
                f"{shape.inlined_rows:,} rows are kept in the catalog",
                f"{shape.inlined_rows:,} rows would be written to Parquet",
                f"CALL {quoted_if_needed(lake)}.flush_inlined_data(schema_name => {quote_text(schema)}, table_name => {quote_text(table)})",
            )
        )
    return findings
