"""Catalogs that a DuckDB serves by its extension quack: addresses and logins."""

from __future__ import annotations

import contextlib
import socket
import threading
import traceback
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.uri import parse_uri
from tests.quack import TOKEN, Servers, free_port

pytestmark = pytest.mark.sampled(2)


@pytest.mark.parametrize(
    ("uri", "address", "display"),
    [
        ("ducklake:quack:host:9595", "quack:host:9595", "host:9595 (Quack)"),
        ("quack:host", "quack:host:9494", "host:9494 (Quack)"),
        ("ducklake:quack:[::1]:99", "quack:[::1]:99", "[::1]:99 (Quack)"),
        ("quack://:secret@db.example.org:9595", "quack:db.example.org:9595", "db.example.org:9595 (Quack)"),
        ("quack://:secret@host", "quack:host:9494", "host:9494 (Quack)"),
    ],
)
def test_uris(uri: str, address: str, display: str):
    location = parse_uri(uri)
    assert (location.address, location.display, location.backend, location.type) == (
        address,
        display,
        "duckdb",
        "quack",
    )
    assert location.uri == f"ducklake:{address}"
    assert "secret" not in f"{location!r}{location.url}"


@pytest.mark.parametrize(
    "uri",
    [
        "quack:",
        "quack:host:0",
        "quack:host:65536",
        "quack:host:1/db",
        "quack:s3cret@host",
        "quack:a b",
        "quack://u:s3cret@h/d",
    ],
)
def test_what_names_no_server_is_refused(uri: str):
    with pytest.raises(dl.UsageError, match="of a server of quack is ") as refused:
        parse_uri(f"ducklake:{uri}") if "//" not in uri else parse_uri(uri)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("uri", ["ducklake:md:lake", "md:lake", "ducklake:motherduck:lake"])
def test_motherduck_is_refused_by_name(uri: str):
    with pytest.raises(
        dl.UnsupportedFeatureError, match=r"MotherDuck \(md:\).* use DuckDB, SQLite, PostgreSQL, MySQL or Quack"
    ):
        dl.connect(uri)


@pytest.fixture
def no_token(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUACK_TOKEN")


@pytest.mark.usefixtures("no_token")
def test_tokens_are_found_by_scope(place: str, tmp_path: Path):
    with dl.Session(engine="duckdb") as session:
        attach = f"ATTACH 'ducklake:quack:{place}' AS lake (DATA_PATH '{tmp_path}/d')"
        with pytest.raises(dl.CatalogError, match="needs the token of its server: CREATE SECRET"):
            session.sql(attach)
        session.sql("CREATE SECRET (TYPE quack, TOKEN 'another-token')")
        with pytest.raises(dl.CatalogError, match="does not know the token"):
            session.sql(attach)
        session.sql(f"CREATE SECRET near (TYPE quack, TOKEN '{TOKEN}', SCOPE 'quack:{place}')")
        session.sql("CREATE SECRET far (TYPE quack, TOKEN 'another-token', SCOPE 'quack:elsewhere')")
        session.sql(attach)
        session.sql("CREATE TABLE lake.t AS SELECT 1 AS i")
        assert session.sql("SELECT catalog_type FROM ducklake_settings('lake')").fetchall() == [("quack",)]
        session.sql("DETACH lake; DROP SECRET near")
        with pytest.raises(dl.CatalogError, match="does not know the token"):
            session.sql(attach)
        session.sql(f"ATTACH 'ducklake:quack:{place}' AS lake (META_TOKEN '{TOKEN}')")
        assert session.sql("FROM lake.t").fetchall() == [(1,)]
        with pytest.raises(dl.UnsupportedFeatureError, match="META_TOKEN is for servers of quack alone"):
            session.sql(f"ATTACH 'ducklake:{tmp_path}/x.ducklake' AS x (META_TOKEN 'a')")
        with pytest.raises(dl.UsageError):
            session.sql("CREATE SECRET (TYPE quack, TOKENS 'a')")


@pytest.mark.usefixtures("no_token")
def test_a_token_is_shown_nowhere(place: str, tmp_path: Path):
    secret = "Xq7-not-to-be-shown"
    for uri in (f"quack://:{secret}@{place}", f"quack://:{secret}@localhost:{free_port()}"):
        with pytest.raises(dl.CatalogError) as refused:
            dl.connect(uri, data_path=f"{tmp_path}/d")
        assert secret not in "".join(traceback.format_exception(refused.value))
    with dl.connect(f"quack://:{TOKEN}@{place}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i")
        (lake,) = session.lakes
        shown = [repr(session), repr(lake), repr(lake.location), str(lake.location.uri), repr(lake.database)]
        shown += [repr(entry) for entry in session.snapshots()]
        with pytest.raises(dl.CatalogError) as refused:
            session.sql("INSERT INTO __ducklake_metadata_lake.ducklake_snapshot SELECT * FROM nowhere")
        shown += traceback.format_exception(refused.value)
        shown.append(str(session.sql("FROM duckdb_databases()").fetchall()))
        assert TOKEN not in "".join(shown)


def test_what_is_no_server_of_the_protocol(quack_server: Servers):
    del quack_server
    with socket.create_server(("localhost", 0)) as listening:
        answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnope\n"

        def reply() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    client.recv(65536)
                    client.sendall(answer)
                    client.close()

        threading.Thread(target=reply, daemon=True).start()
        with pytest.raises(
            dl.CatalogError, match=r"no server of the protocol of DuckDB .*; DuckDB 1\.5 and 2\.0 speak different"
        ):
            dl.connect(f"ducklake:quack:localhost:{listening.getsockname()[1]}")
