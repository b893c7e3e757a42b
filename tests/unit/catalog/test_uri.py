from __future__ import annotations

from pathlib import Path

import pytest

from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.errors import UnsupportedFeatureError, UsageError


@pytest.mark.parametrize(
    ("uri", "backend", "alias"),
    [
        ("ducklake:flights.ducklake", "duckdb", "flights"),
        ("flights.ducklake", "duckdb", "flights"),
        ("ducklake:duckdb:my lake.db", "duckdb", "my_lake"),
        ("ducklake:sqlite:m.sqlite", "sqlite", "m"),
        ("sqlite:///m.sqlite", "sqlite", "m"),
        ("ducklake:postgres:dbname=lake host=/tmp/x user=u", "postgresql", "lake"),
        ("postgresql://u:p@h:5433/lake", "postgresql", "lake"),
        ("ducklake:mariadb:db=lake host=h", "mysql", "lake"),
        ("mariadb://u:p@h/lake", "mysql", "lake"),
    ],
)
def test_uris(uri: str, backend: str, alias: str) -> None:
    location = parse_uri(uri)
    assert (location.backend, location.default_alias) == (backend, alias)


def test_files_are_absolute_and_have_a_default_data_path(tmp_path: Path) -> None:
    location = parse_uri(f"ducklake:{tmp_path}/x.ducklake")
    assert location.path == tmp_path / "x.ducklake"
    assert location.default_data_path == f"{tmp_path}/x.ducklake.files/"


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("ducklake:/data/my lake.ducklake", "ducklake:/data/my lake.ducklake"),
        ("ducklake:sqlite:/data/m.sqlite", "ducklake:sqlite:/data/m.sqlite"),
        (
            "ducklake:postgres:dbname='the lake' host=h port=5433 user=u password='se cret' sslpassword=secret",
            "ducklake:postgres:dbname='the lake' host=h port=5433 user=u",
        ),
        ("postgresql://u:secret@h/lake?password=secret", "ducklake:postgres:dbname=lake host=h user=u"),
        ("ducklake:postgres:dbname=lake host='/tmp/x y'", "ducklake:postgres:dbname=lake host='/tmp/x y'"),
        ("ducklake:mysql:db=lake socket=/s user=u passwd=secret", "ducklake:mysql:db=lake user=u unix_socket=/s"),
    ],
)
def test_the_uri_of_a_location_leads_there_without_secrets(given: str, uri: str) -> None:
    location = parse_uri(given)
    assert location.uri == uri
    there = parse_uri(uri)
    assert (there.backend, there.path, there.default_alias) == (location.backend, location.path, location.default_alias)
    for part in ("database", "host", "port", "username"):
        assert getattr(there.url, part) == getattr(location.url, part)
    assert there.uri == uri


def test_libpq_values_are_kept() -> None:
    url = parse_uri("ducklake:postgres:dbname=lake host=h port=5433 user=u password='se cret' sslmode=require").url
    assert (url.host, url.port, url.username, url.password) == ("h", 5433, "u", "se cret")
    assert url.query["sslmode"] == "require"


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("ducklake:", UsageError),
        ("ducklake:mysql:host=h", UsageError),
        ("mysql://h", UsageError),
        ("oracle://h/db", UnsupportedFeatureError),
        ("ducklake:postgres:dbname", UsageError),
        ("ducklake:postgres:port=x", UsageError),
        ("ducklake::memory:", UnsupportedFeatureError),
    ],
)
def test_what_cannot_be_attached_is_said(uri: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_uri(uri)


def test_mysql_connection_strings() -> None:
    location = parse_uri("ducklake:mysql:db=lake host=h port=3307 user=u passwd='a b' ssl_ca=/ca")
    assert (location.backend, location.default_alias, location.path) == ("mysql", "lake", None)
    url = location.url
    assert (url.drivername, url.host, url.port, url.username, url.password) == ("mysql+pymysql", "h", 3307, "u", "a b")
    assert dict(url.query) == {"ssl_ca": "/ca"}
    assert parse_uri("ducklake:mysql:db=x socket=/run/s").url.query["unix_socket"] == "/run/s"
    assert parse_uri("mariadb://u@h/x").url.drivername == "mysql+pymysql"


@pytest.mark.parametrize(
    "uri",
    [
        "ducklake:postgres:dbname=x password=geheim",
        "ducklake:mysql:db=x password=geheim",
        "mysql://u:geheim@h/x",
        "postgresql://u:geheim@h/x",
    ],
)
def test_passwords_are_not_shown(uri: str) -> None:
    location = parse_uri(uri)
    assert "geheim" not in f"{location} {location!r} {location.url} {location.display}"
    with pytest.raises(UsageError) as caught:
        parse_uri("ducklake:mysql:db=x password=my geheim")
    assert "geheim" not in str(caught.value)
