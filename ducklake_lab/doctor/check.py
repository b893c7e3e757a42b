"""Checks of a lake's health, as data: the question, what a hit means, and the repair or the reason for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ducklake_lab.doctor.context import Context
    from ducklake_lab.doctor.plan import Plan

Severity = Literal["error", "warning", "info"]
#: Order of severities, worst first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
#: Effect on answers at the snapshots of a hit: wrong answers, failing reads, none before a later commit, or none.
Harm = Literal["wrong", "fails", "later", "none"]
#: Metadata alone; lists of files and few delete files too; or footers and rows of all files.
Depth = Literal["catalog", "storage", "deep"]
#: One hit of a check. `table_id`, `since` and `until` have the meaning that `Check` gives them.
Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Repair:
    """Way to mend a hit.

    Attributes:
        text: a short description, a template over the columns of the hit.
        plan: makes the changes of metadata; it raises `NoRepairError` where it cannot prove them safe.
    """

    text: str
    plan: Callable[[Context, Row], Plan]


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a lake.

    Its hits are rows with the columns of `key` and those that its templates name. `table_id` is the table, NULL for the
    lake. `since` and `until` bound the snapshots at which it shows: from one inclusive to the other exclusive, NULL for
    no bound.

    Attributes:
        name: of lower-case words with `_` between.
        family: the part of a lake that it is about.
        object: names the object of a hit, a template.
        finding: says what is wrong, a template.
        query: makes the SQL over the catalog's tables; None where the catalog has nothing to ask.
        probe: finds hits that SQL over the catalog cannot find; each has its own `evidence`.
        repair: None where there is none.
        reason: says why there is no repair.
        key: columns that identify a hit.
    """

    name: str
    family: str
    severity: Severity
    harm: Harm
    object: str
    finding: str
    query: Callable[[Context], str | None] | None = None
    probe: Callable[[Context], Iterator[Row]] | None = None
    repair: Repair | None = None
    reason: str = ""
    key: tuple[str, ...] = ("table_id", "id")
    depth: Depth = "catalog"


@dataclass(frozen=True, slots=True)
class Finding:
    """One hit of a check in a lake.

    Attributes:
        object: what it is about, e.g. `main.t: data file 12`.
        finding: what is wrong, and whether answers are.
        evidence: SQL that shows it, over the lake's metadata database or over files.
        since_snapshot: the first snapshot there is at which it shows; None where none does.
        last_snapshot: the last one; None where it shows at the newest, or at none.
        repair: the way to mend it, or why there is none.
        check: the check's name.
        key: identifies the hit among those of the check.
    """

    severity: Severity
    object: str
    finding: str
    evidence: str
    since_snapshot: int | None
    repair: str
    check: str
    last_snapshot: int | None = None
    can_repair: bool = False
    key: Mapping[str, Any] = field(default_factory=dict)
