"""Secrets of statements and URIs, also of those that have lost a letter or their end: nothing shown or kept holds them."""

from __future__ import annotations

import os
import random
import string
import traceback
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.ultratb import VerboseTB

import ducklake_lab as dl
from ducklake_lab.magics.ducklake import DuckLakeMagics
from ducklake_lab.redaction import hide
from tests.property.harmless_kinds import HARMLESS
from tests.property.secret_kinds import KINDS, NAMED, Drawn
from tests.sampling import examples

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


@settings(max_examples=examples(300))
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


@settings(max_examples=examples(150))
@given(uri=damaged(URIS))
@example("ducklake:postgre:dbname=x password=zq7hunterk9tailx")
@example("ducklake:postgresql//me:zq7hunterk9tailx@localhost/x")
@example("ducklake:postgres:dbname=xpassword=zq7hunterk9tailx host=/nowhere")
@example("ducklake:postgres:port=1password=zq7hunterk9tailx host=/nowhere")
@example("ducklake:ostgresql://me:zq7hunter''k9tailx@localhost:1/x")
def test_uris(uri: str) -> None:
    _run(lambda: dl.connect(uri, data_path="data", engine="duckdb"))


@settings(max_examples=examples(150))
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


DRAWN = st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 2**32)).map(lambda drawn: _draw(*drawn))
#: Statements that write; `{}` is a literal, `{raw}` its text.
WRITES = (
    "INSERT INTO t VALUES ({})",
    "INSERT INTO t SELECT s FROM (VALUES ('a'), ({})) AS v(s) WHERE s <> {}",
    "UPDATE t SET s = 'b' WHERE s <> {}",
    "DELETE FROM t WHERE s = {}",
    "CREATE OR REPLACE TABLE u AS SELECT {} AS x",
    "CREATE OR REPLACE VIEW v AS SELECT {} AS x",
    "INSERT INTO t VALUES ('a') /* {raw} */",
    "INSERT INTO t SELECT $${raw}$$",
    "COMMENT ON TABLE t IS {}",
    "ALTER TABLE t ALTER COLUMN s SET DEFAULT {}",
)
#: Statements that fail.
FAILING = (
    "SELECT * FROM read_parquet({})",
    "SELECT * FROM read_csv({})",
    "CALL ducklake_add_data_files('lake', 't', {})",
    "COPY t FROM {} (FORMAT parquet)",
    "COPY t TO '/nowhere/x' (ENCRYPTION_KEY {}, FORMAT parquet)",
    "COPY t TO '/nowhere/x' (FORMAT parquet, ENCRYPTION_CONFIG {{footer_key_value: {}}})",
    "SELECT CAST({} AS INTEGER)",
    "SELECT strptime({}, '%Y')",
    "SELECT {} FRO t x y",
    "SELECT nothing FROM t WHERE s = {}",
    "INSERT INTO t SELECT {}::DATE::VARCHAR",
    "SELECT error({})",
    "SET s3_secret_access_keys = {}",
)


def _draw(kind: str, seed: int) -> Drawn:
    return KINDS[kind](random.Random(seed))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _filled(statement: str, text: str) -> str:
    literal = _literal(text)
    return statement.replace("{{", "{").replace("}}", "}").replace("{}", literal).replace("{raw}", text)


def _check_none(shown: str, drawn: Drawn) -> None:
    assert not any(secret in shown for secret in drawn.secrets), shown


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder = tmp_path_factory.mktemp("lake")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", alias="lake", engine="duckdb") as session:
        session.record_statements = True
        session.sql("CREATE TABLE t (s VARCHAR)")
        yield session


def _failure(call: Callable[[], object]) -> str:
    """All that is shown of an error; "" where there is none."""
    try:
        call()
    except dl.DuckLakeError as error:
        return _shown(error)
    return ""


@settings(max_examples=examples(300))
@given(drawn=DRAWN, around=st.sampled_from(("{}", "SELECT {}", "It says: {}", "INSERT INTO t VALUES (1, {}, 'Ann')")))
def test_each_kind_is_found(drawn: Drawn, around: str) -> None:
    _check_none(hide(around.replace("{}", _literal(drawn.text))), drawn)
    _check_none(hide(drawn.text), drawn)


@settings(max_examples=examples(300))
@given(kind=st.sampled_from(sorted(HARMLESS)), seed=st.integers(0, 2**32))
def test_what_is_no_secret_is_shown(kind: str, seed: int) -> None:
    text = HARMLESS[kind](random.Random(seed))
    assert hide(text) == text


@settings(max_examples=examples(100))
@given(
    name=st.sampled_from(
        (
            "token {}", "the key is {}", "signature: {}", "SET s3_secret_access_key = '{}'", "?sig={}", "api-key {}",
            "the password was {}", "Bearer {}", "hmac {}", "f(api_key => '{}')", "encryption_key: {}", "SELECT '{}' AS token",
        )
    ),
    count=st.sampled_from((32, 40, 64, 128)),
    seed=st.integers(0, 2**32),
)  # fmt: skip
def test_digests_are_secrets_where_secrets_stand(name: str, count: int, seed: int) -> None:
    secret = "".join(random.Random(seed).choices("0123456789abcdef", k=count))
    assert secret not in hide(name.replace("{}", secret))


@settings(max_examples=examples(30))
@given(drawn=DRAWN, statement=st.sampled_from(WRITES))
def test_commits_hold_none(lake: dl.Session, drawn: Drawn, statement: str) -> None:
    lake.sql(_filled(statement, drawn.text))
    newest = lake.snapshots()[-1]
    _check_none(f"{newest!r} {newest.info.commit_extra_info} {newest.info.commit_message}", drawn)
    lake.sql("DROP VIEW IF EXISTS v")


@settings(max_examples=examples(80))
@given(drawn=DRAWN, statement=st.sampled_from(FAILING))
def test_errors_hold_none(lake: dl.Session, drawn: Drawn, statement: str) -> None:
    text = _filled(statement, drawn.text)
    _check_none(_failure(lambda: lake.sql(text)), drawn)


@settings(max_examples=examples(30))
@given(drawn=DRAWN, statement=st.sampled_from(FAILING[:3] + FAILING[6:8]))
def test_errors_of_parameters_hold_none(lake: dl.Session, drawn: Drawn, statement: str) -> None:
    params = {"given": drawn.text}
    _check_none(_failure(lambda: lake.sql(_filled(statement, "").replace("''", ":given"), params)), drawn)


@settings(max_examples=examples(20))
@given(name=st.sampled_from(NAMED), seed=st.integers(0, 2**32))
def test_passwords_are_known_by_their_places(lake: dl.Session, name: str, seed: int) -> None:
    secret = "".join(random.Random(seed).choices(string.ascii_lowercase, k=9))
    text = f"INSERT INTO t SELECT 'x' FROM {name.format(file=_literal('/nowhere.csv'), secret=_literal(secret))}"
    _check_none(hide(text) + _failure(lambda: lake.sql(text)), Drawn(text, (secret,)))
    _check_none(repr(lake.snapshots()[-1]), Drawn(text, (secret,)))


@settings(max_examples=examples(30))
@given(drawn=DRAWN, statement=st.sampled_from(FAILING), option=st.sampled_from(("", " --traceback")))
def test_cells_hold_none(lake: dl.Session, drawn: Drawn, statement: str, option: str) -> None:
    magics = DuckLakeMagics(InteractiveShell.instance())
    magics.session = lake
    try:
        magics.ducklake(option, _filled(statement, drawn.text))
    except dl.DuckLakeError as error:
        lines = getattr(error, "_render_traceback_", list)()
        _check_none("\n".join([*lines, *traceback.format_exception(error)]), drawn)


@given(
    word=st.text(string.ascii_letters, min_size=1, max_size=14),
    number=st.integers(-(2**63), 2**63),
    key=st.uuids(),
    when=st.datetimes(),
    name=st.sampled_from(("o_orderkey", "key", "name", "customer_id", "VeryLongNameOfAColumnForCustomers2026")),
)
def test_ordinary_sql_is_left_alone(word: str, number: int, key: uuid.UUID, when: datetime, name: str) -> None:
    path = f"/home/{word}/Projects/Data2026/part-{key}-c000.snappy.parquet"
    text = (
        f"UPDATE t SET {name} = '{word} {word}', n = {number} WHERE {name} = '{word}' AND id = '{key}' "
        f"AND ts > TIMESTAMP '{when}' AND f <> '{path}' AND u <> 's3://bucket/year=2026/month=01/*.parquet' -- {word}: {word}"
    )
    assert hide(text) == text
