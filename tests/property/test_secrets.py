"""Secrets of statements and URIs that have lost a letter or their end: nothing that is shown holds a part of them."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.ultratb import VerboseTB

import ducklake_lab as dl
from ducklake_lab.magics.ducklake import DuckLakeMagics

#: Either half would be enough to tell that it was shown.
HALVES = ("zq7hunter", "k9tailx")
SECRETS = ("{}{}", "{}--{}", "{} {}", "{},{}", "{}''{}", "{};{}")

STATEMENTS = (
    "CREATE SECRET (TYPE s3, KEY_ID 'AKIA', SECRET '{}', REGION 'eu-west-1')",
    "CREATE OR REPLACE SECRET pg (\n TYPE postgres, HOST '/nowhere',\n PASSWORD '{}',\n USER 'me'\n)",
    "SELECT 1;\nCREATE SECRET lake (TYPE ducklake, METADATA_PATH 'postgres:dbname=x host=/nowhere password={}');",
    "ATTACH 'ducklake:postgres:dbname=x host=/nowhere password={}' AS other (DATA_PATH 'data/')",
    "ATTACH 'ducklake:postgresql://me:{}@localhost:1/x' AS other",
    "ATTACH 'ducklake:mysql:db=x host=127.0.0.1 port=1 user=me password={}' AS other (READ_ONLY)",
)
URIS = (
    "ducklake:postgres:dbname=x host=/nowhere password={} user=me",
    "ducklake:postgres:password={} port=1 host=127.0.0.1",
    "ducklake:postgresql://me:{}@localhost:1/x",
    "ducklake:mysql:db=x host=127.0.0.1 port=1 user=me password={}",
)
LINES = (
    "connect {uri}",
    "connect '{uri}'",
    "connect '{uri}' --data-path data --alias x",
    "use {uri}",
)


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A misspelt URI may name a file."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    yield
    os.chdir(before)


def _check_hidden(shown: str) -> None:
    folded = shown.casefold()
    assert not any(half in folded for half in HALVES), shown


def _shown(error: BaseException) -> str:
    """All that Python and IPython print of an error; IPython's longest form has the values of variables in it."""
    verbose = VerboseTB(include_vars=True, theme_name="nocolor")
    frames = "\n".join(verbose.structured_traceback(type(error), error, _below(error)))
    return "\n".join(
        [*traceback.format_exception(error, chain=True), repr(error.__cause__), repr(error.__context__), frames]
    )


def _below(error: BaseException):  # type: ignore[no-untyped-def]
    """The traceback without this file's frames, which hold the secret."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    return place


def _run(call: Callable[[], object]) -> None:
    try:
        shown = repr(call())
    except dl.DuckLakeError as error:
        shown = _shown(error)
    _check_hidden(shown)


@st.composite
def damaged(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    secret = draw(st.sampled_from(SECRETS)).format(*HALVES)
    text = draw(st.sampled_from(texts)).replace("{}", secret)
    at = draw(st.integers(0, len(text)))
    return draw(st.sampled_from((text[:at], text[:at] + text[at + 1 :], text)))


def _sessions_hold_nothing(session: dl.Session) -> None:
    locations = [lake.location for lake in session.lakes]
    _check_hidden(repr((session, session.lakes, locations, [repr(place.url) for place in locations])))


@settings(max_examples=300)
@given(text=damaged(STATEMENTS))
@example("CREATE SECRET (TYPE s3, KEY_ID 'AKIA', SECRET zq7hunterk9tailx')")
@example("CREATE SECRET s (TYPE s3, SECRET 'x' zq7hunterk9tailx)")
@example("ATTACH 'ducklake:ostgresql://me:zq7hunter k9tailx@localhost:1/x' AS other")
@example("SELECT 1\nCREATE SECRET lake (TYPE ducklake, METADATA_PATH 'postgres:dbname=x password=zq7hunterk9tailx');")
@example("CREATE SECRE s (TYPE s3, SECRET 'zq7hunterk9tailx')")
def test_statements(text: str) -> None:
    with dl.Session(engine="duckdb") as session:
        _run(lambda: session.sql(text))
        _sessions_hold_nothing(session)


@settings(max_examples=150)
@given(uri=damaged(URIS))
@example("ducklake:postgre:dbname=x password=zq7hunterk9tailx")
@example("ducklake:postgresql//me:zq7hunterk9tailx@localhost/x")
@example("ducklake:postgres:dbname=xpassword=zq7hunterk9tailx host=/nowhere")
@example("ducklake:postgres:port=1password=zq7hunterk9tailx host=/nowhere")
@example("ducklake:ostgresql://me:zq7hunter''k9tailx@localhost:1/x")
def test_uris(uri: str) -> None:
    _run(lambda: dl.connect(uri, data_path="data", engine="duckdb"))


@settings(max_examples=150)
@given(line=st.sampled_from(LINES).flatmap(lambda line: damaged(tuple(line.replace("{uri}", uri) for uri in URIS))))
@example("connect ducklake:postgres:dbname=x password=zq7hunterk9tailx")
@example("connectducklake:postgres:dbname=x,password=zq7hunterk9tailx")
@example("connect 'ducklake:postgres:dbname=x host=/nowhere password=zq7hunter k9tailxuser=me'")
def test_magics(line: str) -> None:
    magics = DuckLakeMagics(InteractiveShell.instance())
    try:
        shown = repr(magics.ducklake(line))
    except dl.DuckLakeError as error:
        shown = "\n".join([*error._render_traceback_(), *traceback.format_exception(error)])  # type: ignore[attr-defined]
    _check_hidden(shown)
    cell = f"CREATE SECRET s (TYPE s3, SECRET 'zq7hunterk9tailx' {line[:20]}"
    try:
        magics.session = dl.Session(engine="duckdb")
        magics.ducklake("", cell)
    except dl.DuckLakeError as error:
        _check_hidden("\n".join(error._render_traceback_()))  # type: ignore[attr-defined]


def test_logs_hold_no_secret() -> None:
    with dl.Session(engine="duckdb") as session:
        session.sql("CALL enable_logging(level => 'trace')")
        for statement in STATEMENTS[:3]:
            session.sql(statement.replace("{}", "".join(HALVES)))
        _run(lambda: session.sql(STATEMENTS[3].replace("{}", "".join(HALVES))))
        broken = STATEMENTS[0].replace("SECRET (", "SECRE (").replace("{}", "".join(HALVES))
        _run(lambda: session.sql(broken))
        _check_hidden(repr(session.sql("FROM duckdb_logs").fetchall()))
        _check_hidden(repr(session.sql("FROM duckdb_secrets()").fetchall()))
