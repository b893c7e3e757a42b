"""Builds the demo lake from the command line: `python -m ducklake_lab.demo`."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import get_args

from ducklake_lab.demo.builder import build
from ducklake_lab.demo.notebook import execute
from ducklake_lab.demo.places import Catalog
from ducklake_lab.errors import DuckLakeError

# progress is to be seen when the output is a pipe too
_report = partial(print, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ducklake_lab.demo", description="Builds the demo lake; keeps one that is complete."
    )
    parser.add_argument("--path", type=Path, default=Path("demo"), help="the lake's folder; default: demo")
    parser.add_argument("--catalog", choices=get_args(Catalog), default="duckdb", help="default: duckdb")
    parser.add_argument("--uri", help="a PostgreSQL catalog of yours: ducklake:postgres:dbname=… host=…")
    parser.add_argument("--force", action="store_true", help="build it anew, whatever is there")
    parser.add_argument("--notebook", type=Path, help="then execute this notebook; the result goes into the folder")
    options = parser.parse_args()
    try:
        where = build(options.path, options.catalog, uri=options.uri, force=options.force, report=_report)
        if options.notebook is not None:
            execute(options.notebook, options.path / options.notebook.name, where.uri_in_folder, report=_report)
    except DuckLakeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
