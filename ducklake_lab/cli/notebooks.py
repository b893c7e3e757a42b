"""`run`: a notebook executed as of a snapshot, or at two snapshots to compare its outputs."""

from __future__ import annotations

import argparse
from pathlib import Path

from ducklake_lab.cli.arguments import DIFFERENT, DONE, Commands, count
from ducklake_lab.cli.output import write
from ducklake_lab.errors import DuckLakeError, UsageError


def add_run(commands: Commands) -> None:
    run = commands.add(
        "run",
        "execute a notebook as of a snapshot of its lakes, or at two snapshots to compare its outputs",
        _run,
        "report.ipynb --as-of q3-close --output report-q3.ipynb",
        "report.ipynb --compare 12 17 --html report.html",
        codes="0 done, and nothing differs, 1 something differs",
        of_lake=False,
    )
    run.add_argument("notebook", metavar="NOTEBOOK", help="a notebook of a Python kernel; it stays as it is")
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument("--as-of", metavar="SNAPSHOT", help="a snapshot id, a tag or a time: lakes are read as of there")
    what.add_argument("--compare", metavar=("A", "B"), nargs=2, help="two of them: run it at both, compare the outputs")
    run.add_argument("--lake", metavar="NAME", help="the alias of the only lake that is read so; all if left out")
    run.add_argument("--output", metavar="FILE", help="of --as-of: write the executed copy")
    run.add_argument("--html", metavar="FILE", help="of --compare: the page to write (NOTEBOOK.compare.html)")
    run.add_argument("--timeout", type=count, default=600, metavar="SECONDS", help="of a cell (600)")


def _run(given: argparse.Namespace) -> int:
    if given.html and given.as_of is not None:
        raise UsageError("--html is of --compare; --output writes the executed notebook.")
    if given.output and given.as_of is None:
        raise UsageError("--output is of --as-of; --html names the page of --compare.")
    return _run_once(given) if given.as_of is not None else _run_twice(given)


def _run_once(given: argparse.Namespace) -> int:
    from ducklake_lab.notebooks import running

    path = Path(given.notebook)
    run = running.run_as_of(path, given.as_of, lake=given.lake, timeout=given.timeout)
    if given.output:
        running.write(run.document, Path(given.output))
    if run.error is not None:
        raise DuckLakeError(f"{path.name} as of {given.as_of}: {run.error}")
    lakes = " · ".join(f"{alias} as of snapshot {number}" for alias, number in run.lakes.items())
    write([f"{path.name}: {lakes}{f' · wrote {given.output}' if given.output else ''}\n"])
    return DONE


def _run_twice(given: argparse.Namespace) -> int:
    from ducklake_lab.diff import row_diff
    from ducklake_lab.notebooks import report
    from ducklake_lab.notebooks.comparing import compare_outputs
    from ducklake_lab.notebooks.running import run_as_of

    path = Path(given.notebook)
    runs = [run_as_of(path, at, lake=given.lake, timeout=given.timeout) for at in given.compare]
    cells = compare_outputs(*(run.document for run in runs))
    page = given.html or f"{path.stem}.compare.html"
    row_diff.write(page, report.document(path.name, given.compare[0], given.compare[1], cells))
    failed = [f"as of {at}: {run.error}" for at, run in zip(given.compare, runs, strict=True) if run.error is not None]
    if failed:
        raise DuckLakeError(f"{path.name} {failed[0]}; {page} shows what ran.")
    differing = [str(cell.number) for cell in cells if cell.differs]
    which = (
        f"the outputs of {len(differing)} of {len(cells)} cells differ: {', '.join(differing)}"
        if differing
        else (f"the outputs of all {len(cells)} cells are equal")
    )
    write([f"{path.name}: {which} · wrote {page}\n"])
    return DIFFERENT if differing else DONE
