"""`doctor`: the health of a lake, and its repair."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ducklake_lab.cli.arguments import DIFFERENT, DONE, Commands, add_data_path, add_json
from ducklake_lab.cli.lakes import attach
from ducklake_lab.cli.output import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ducklake_lab.doctor import Finding
    from ducklake_lab.session.doctoring import Diagnosis, Repairs


def add_doctor(commands: Commands) -> None:
    doctor = commands.add(
        "doctor",
        "check the health of a lake: its catalog, its files, and with --deep their rows",
        _doctor,
        "lake.ducklake",
        "ducklake:postgres:dbname=lake --deep --json",
        "lake.ducklake --repair",
        codes="0 healthy, 1 a finding is an error or a warning",
    )
    doctor.add_argument("--table", metavar="TABLE", help="only what is found about one table")
    doctor.add_argument("--deep", action="store_true", help="read footers and rows of all files too")
    doctor.add_argument("--repair", action="store_true", help="repair what can be mended, then check again")
    add_data_path(doctor)
    add_json(doctor)


def _doctor(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given, read_only=not given.repair)
        repairs = None
        if given.repair:
            chosen: list[Finding] | str = "all"
            if given.table is not None:
                chosen = [one for one in session.doctor(given.table, given.deep).findings if one.can_repair]
            repairs = session.repair(chosen, dry_run=False, deep=given.deep)
        diagnosis = session.doctor(given.table, given.deep)
        if given.json:
            write([json.dumps(_members(diagnosis, repairs), ensure_ascii=False, indent=2, default=str), "\n"])
        else:
            write(_lines(diagnosis, repairs))
    return DIFFERENT if diagnosis.is_ill else DONE


def _members(diagnosis: Diagnosis, repairs: Repairs | None) -> dict[str, object]:
    rows = [dict(zip(diagnosis.columns, row, strict=True)) for row in diagnosis.fetchall()]
    findings = [row | {"check": one.check} for row, one in zip(rows, diagnosis.findings, strict=True)]
    members: dict[str, object] = {"lake": diagnosis.title, "ill": diagnosis.is_ill, "summary": diagnosis.summary}
    if repairs is not None:
        members["repaired"] = [
            {"check": one.finding.check, "object": one.finding.object, "result": one.note, "snapshot": one.snapshot_id}
            for one in repairs.repaired
        ]
    return members | {"findings": findings}


def _lines(diagnosis: Diagnosis, repairs: Repairs | None) -> Iterator[str]:
    from ducklake_lab.widgets.html import visible

    for one in repairs.repaired if repairs is not None else ():
        made = f" (snapshot {one.snapshot_id})" if one.snapshot_id is not None else ""
        yield visible(f"{one.finding.check}  {one.finding.object}: {one.note}{made}") + "\n"
    for finding in diagnosis.findings:
        yield visible(f"{finding.severity}  {finding.object}: {finding.finding}") + "\n"
        yield visible(f"    repair: {finding.repair}") + "\n"
    yield visible(f"{diagnosis.title} is {diagnosis.summary}") + "\n"
