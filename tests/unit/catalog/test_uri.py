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
    ],
)
def test_uris(uri: str, backend: str, alias: str) -> None:
    location = parse_uri(uri)
    assert (location.backend, location.default_alias) == (backend, alias)


def test_files_are_absolute_and_have_a_default_data_path(tmp_path: Path) -> None:
    location = parse_uri(f"ducklake:{tmp_path}/x.ducklake")
    assert location.path == tmp_path / "x.ducklake"
    assert location.default_data_path == f"{tmp_path}/x.ducklake.files/"


def test_libpq_values_are_kept() -> None:
    url = parse_uri("ducklake:postgres:dbname=lake host=h port=5433 user=u password='se cret' sslmode=require").url
    assert (url.host, url.port, url.username, url.password) == ("h", 5433, "u", "se cret")
    assert url.query["sslmode"] == "require"


def test_passwords_are_not_shown() -> None:
    location = parse_uri("ducklake:postgres:dbname=lake user=u password=secret host=h")
    assert "secret" not in repr(location)
    assert "secret" not in location.display


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("ducklake:", UsageError),
        ("ducklake:mysql:db=x", UnsupportedFeatureError),
        ("mysql://h/db", UnsupportedFeatureError),
        ("ducklake:postgres:dbname", UsageError),
        ("ducklake:postgres:port=x", UsageError),
        ("ducklake::memory:", UnsupportedFeatureError),
    ],
)
def test_what_cannot_be_attached_is_said(uri: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_uri(uri)
