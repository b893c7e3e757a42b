"""The doctor of a session: findings about the health of a lake, and their repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ducklake_lab.doctor import Examination, Finding, Repaired, examine, preview, repair
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import TransactionError, UsageError, did_you_mean
from ducklake_lab.hooks import hook
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.transactions.transactions import Transactions

#: Findings that can be repaired: one, several, those of a check by its name, or all.
Chosen = Finding | Sequence[Finding] | str


class Diagnosis(Result):
    """The findings about a lake, worst first, one per row; notebooks draw them.

    Attributes:
        title: the lake or table.
        findings: the rows as objects, which `session.repair` takes.
        examination: what was checked.
    """

    def __init__(self, title: str, examination: Examination) -> None:
        self.title, self.examination, self.findings = title, examination, examination.findings
        findings = self.findings
        texts = {
            name: pa.array([getattr(one, name) for one in findings], pa.string())
            for name in ("severity", "object", "finding", "evidence")
        }
        since = pa.array([one.since_snapshot for one in findings], pa.int64())
        repairs = pa.array([one.repair for one in findings], pa.string())
        super().__init__(InMemory(pa.table({**texts, "since_snapshot": since, "repair": repairs})))

    @property
    def is_ill(self) -> bool:
        """Whether a finding is an error or a warning."""
        return any(one.severity != "info" for one in self.findings)

    @property
    def summary(self) -> str:
        """Returns a line on what was found, and what was checked."""
        of = self.examination
        asked = f"{of.checked} checks of {of.tables:,} tables, {of.files:,} data files and {of.snapshots:,} snapshots"
        counts = [(name, sum(one.severity == name for one in self.findings)) for name in ("error", "warning", "info")]
        severities = ", ".join(f"{n:,} {name}{'' if n == 1 or name == 'info' else 's'}" for name, n in counts if n)
        return f"{'healthy' if not self.is_ill else 'ill'}: {severities or 'nothing found'} by {asked}"

    def _repr_html_(self) -> str:
        html: str = hook("doctor.html")(self)
        return html

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return {"text/plain": f"{self.title} is {self.summary}", "text/html": self._repr_html_()}


class Repairs(Result):
    """Repairs of findings, done or planned: a row for each change of a metadata table.

    Attributes:
        repaired: an entry for each finding.
        dry_run: whether nothing has changed.
    """

    def __init__(self, title: str, repaired: Sequence[Repaired], *, dry_run: bool) -> None:
        self.title, self.repaired, self.dry_run = title, tuple(repaired), dry_run
        rows = [line for one in repaired for line in _lines(one)]
        names = ("check", "object", "result", "snapshot", "action", "metadata_table", "before", "after")
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        table = {
            name: pa.array(column, pa.int64() if name == "snapshot" else pa.string())
            for name, column in zip(names, columns, strict=True)
        }
        super().__init__(InMemory(pa.table(table)))


def _lines(one: Repaired) -> list[tuple[object, ...]]:
    start = (one.finding.check, one.finding.object, one.note, one.snapshot_id)
    if one.plan is None:
        return [(*start, None, None, None, None)]
    lines: list[tuple[object, ...]] = []
    for change in one.plan.changes:
        before, after = change.differing()
        lines.append((*start, change.action, change.table, _text(before), _text(after)))
    lines += [(*start, each.action, each.table, each.text, None) for each in one.plan.statements]
    if one.plan.next_file_id or one.plan.next_catalog_id:
        after = {"next_file_id": one.plan.next_file_id, "next_catalog_id": one.plan.next_catalog_id}
        lines.append((*start, "INSERT", "ducklake_snapshot", None, _text(after)))
    return lines


def _text(values: Mapping[str, object]) -> str | None:
    """Returns values by column; keys of files are left out."""
    shown = (f"{name} = {'***' if name == 'encryption_key' and value else value}" for name, value in values.items())
    return ", ".join(shown) or None


@works_on_lakes
class Doctoring:
    """The part of a session that checks and repairs lakes."""

    _lakes: Lakes
    _transactions: Transactions

    def doctor(self, table: str | None = None, deep: bool = False) -> Diagnosis:
        """Checks the health of the current lake, or of one table; changes nothing.

        Its rows have the columns severity (error, warning or info), object, finding, evidence (SQL that shows it),
        since_snapshot (the first snapshot at which it shows) and repair (the way to mend it, or why there is none).
        Without `deep` it reads metadata, lists files, and reads few delete files.

        Args:
            deep: read the footers and rows of all files too.

        Raises:
            CatalogError: the catalog cannot be read at all.
        """
        entry = self._lakes.parse(table) if table is not None else None
        lake = entry.lake if entry is not None else self._lakes.get()
        table_id = entry.table().table_id if entry is not None else None
        return Diagnosis(table or lake.alias, examine(lake, table_id, deep=deep))

    def repair(self, finding: Chosen = "all", dry_run: bool = True, deep: bool = False) -> Repairs:
        """Repairs findings of `doctor` in the current lake, or with `dry_run` shows the changes and makes none.

        Each repair is one commit, which makes a snapshot that changes no row. It is planned again under the catalog's
        lock, and checked before it is committed. No repair removes the only copy of anything. Where none is proven safe,
        the finding stays, and the result says why.

        Args:
            finding: a finding, several, the name of a check, or "all".
            dry_run: change nothing.
            deep: look for "all" in footers and rows too.

        Raises:
            TransactionError: a transaction is open, or the lake is read-only.
            UsageError: there is no check of that name.
        """
        if self._lakes.in_transaction:
            raise TransactionError("Repairs are commits of their own; COMMIT or ROLLBACK first.")
        lake = self._lakes.get()
        if dry_run:
            return Repairs(lake.alias, preview(lake, self._chosen(finding, deep=deep)), dry_run=True)
        lake.check_writable()
        done: list[Repaired] = []
        if isinstance(finding, Finding) or not isinstance(finding, str):
            done += repair(lake, self._chosen(finding, deep=deep))
            return Repairs(lake.alias, done, dry_run=False)
        tried: set[tuple[object, ...]] = set()
        # a repair may show findings that others hid
        while fresh := [one for one in self._chosen(finding, deep=deep) if _key(one) not in tried]:
            tried |= {_key(one) for one in fresh}
            done += repair(lake, fresh)
        return Repairs(lake.alias, done, dry_run=False)

    def _chosen(self, finding: Chosen, *, deep: bool) -> Sequence[Finding]:
        if isinstance(finding, Finding):
            return [finding]
        if not isinstance(finding, str):
            if not all(isinstance(one, Finding) for one in finding):
                raise UsageError('repair takes findings of doctor(), the name of a check, or "all".')
            return list(finding)
        if finding != "all":
            _check_name(finding)
            findings = examine(self._lakes.get(), deep=True).findings
            return [one for one in findings if one.check == finding]
        return [one for one in examine(self._lakes.get(), deep=deep).findings if one.can_repair]


def _key(one: Finding) -> tuple[object, ...]:
    return one.check, *one.key.items()


def _check_name(name: str) -> None:
    from ducklake_lab.doctor.registry import BY_NAME

    if name not in BY_NAME:
        raise UsageError(f'There is no check "{name}".{did_you_mean(name, BY_NAME)}')
