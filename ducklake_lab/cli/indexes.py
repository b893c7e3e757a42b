"""`indexes`: indexes of the metadata tables in a catalog's database."""

from __future__ import annotations

import argparse

from ducklake_lab.cli.arguments import DONE, Commands
from ducklake_lab.cli.lakes import uri
from ducklake_lab.cli.output import write


def add_indexes(commands: Commands) -> None:
    indexes = commands.add(
        "indexes",
        "show indexes that make a large catalog quicker; --create makes them",
        _indexes,
        "ducklake:postgres:dbname=lake",
        "ducklake:postgres:dbname=lake --create",
    )
    change = indexes.add_mutually_exclusive_group()
    change.add_argument("--create", action="store_true", help="make those that are missing")
    change.add_argument("--drop", action="store_true", help="drop those that are there")


def _indexes(given: argparse.Namespace) -> int:
    from ducklake_lab.catalog import indexes
    from ducklake_lab.session import Session

    with Session() as session:
        lake = session.attach(uri(given.lake), create_if_not_exists=False)
        with lake.connect(fresh=True) as connection:
            if given.create or given.drop:
                change = indexes.create if given.create else indexes.drop
                for name in change(lake, connection):
                    write([f"{'created' if given.create else 'dropped'}  {name}\n"])
            existing = indexes.existing(connection, lake.database)
        write(
            f"{'there   ' if index.name in existing else 'missing '} {indexes.statement(index, lake.database)}\n"
            for index in indexes.offered(lake.database)
        )
        if lake.location.backend == "duckdb":
            write(["A catalog in DuckDB is quick without indexes; none are offered.\n"])
    return DONE
