"""Scripts, and random sequences of statements, through the reference and through us: the same metadata, row for row.

Then again by turns, on one lake: what one begins the other goes on with.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, metadata
from tests.interop.test_metadata import SCRIPTS as SCRIPTS_OF_ENTRIES
from tests.sampling import CATALOGS, ON_REQUEST


def _read(path: Path) -> dict[str, list[str]]:
    """Scripts by name: one begins at each line `-- name`; a statement ends with a semicolon at a line's end."""
    scripts: dict[str, list[str]] = {}
    for part in path.read_text().split("\n-- "):
        name, _, text = part.removeprefix("-- ").partition("\n")
        scripts[name] = [statement.strip() for statement in text.strip().removesuffix(";").split(";\n")]
    return scripts


SCRIPTS = _read(Path(__file__).parent / "scripts.sql")
ALL = {**SCRIPTS, **SCRIPTS_OF_ENTRIES}
_numbers = itertools.count()
KINDS = [kind for kind in CATALOGS if kind not in ("mysql", *ON_REQUEST)]


def test_there_are_scripts_of_everything() -> None:
    assert len(ALL) >= 40


@pytest.mark.sampled(5)
@pytest.mark.parametrize("script", SCRIPTS)
def test_metadata_equals_the_references(
    script: str,
    catalog: str,
    lake_uri: Callable[..., str],
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
    request: pytest.FixtureRequest,
) -> None:
    _start_spark(script, request)
    theirs = _of_script(script, catalog, lambda: lake_uri("theirs"), tmp_path, reference)
    uri = lake_uri("ours")
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/ours_data", engine="duckdb") as session:
        _run(session, SCRIPTS[script])
        assert script.startswith("spark") or not session.spark_started
    _assert_equal(metadata(reference, uri), theirs)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("number", "script"), list(enumerate(ALL)))
def test_by_turns(
    number: int,
    script: str,
    new_catalog: Callable[..., str],
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
    request: pytest.FixtureRequest,
) -> None:
    _start_spark(script, request)
    kind = KINDS[number % len(KINDS)]
    theirs = _of_script(script, kind, lambda: new_catalog(kind, "theirs"), tmp_path, reference)
    uri = new_catalog(kind, "both")
    attach(reference, uri, data_path=tmp_path / "both_data")
    detach(reference)
    for turn, statements in enumerate(_units(ALL[script])):
        if turn % 2 == number % 2:
            attach(reference, uri)
            for statement in statements:
                reference.execute(statement)
            detach(reference)
        else:
            with dl.connect(uri, alias="lake", engine="duckdb") as session:
                _run(session, statements)
    _assert_equal(metadata(reference, uri), theirs)


@pytest.mark.parametrize(
    "changes",
    [
        [
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            "UPDATE t SET s = 'z' WHERE i = 1",
            "DELETE FROM t WHERE i = 2",
            "INSERT INTO t VALUES (3, 'c')",
        ],
        ["INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "UPDATE t SET s = 'z' WHERE i < 2"],
        ["INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "DELETE FROM t WHERE i = 2"],
        [
            "INSERT INTO t VALUES (50, 'a')",
            "INSERT INTO t SELECT r, 'x' FROM range(1, 30) s(r)",
            "UPDATE t SET s = 'z' WHERE i = 7",
            "DELETE FROM t WHERE i BETWEEN 4 AND 9",
        ],
    ],
)
def test_rows_that_their_own_transaction_changes(
    changes: list[str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    """Both number such rows when they commit; the reference's bounds include values that were never committed."""
    script = [
        "CREATE TABLE t (i INTEGER, s VARCHAR)",
        "INSERT INTO t VALUES (0, 'q')",
        "BEGIN",
        *changes,
        "COMMIT",
        "INSERT INTO t VALUES (99, 'n')",
    ]
    attach(reference, f"ducklake:{tmp_path}/theirs.ducklake", data_path=tmp_path / "theirs_data")
    for statement in script:
        reference.execute(statement)
    query = "SELECT rowid, * FROM t ORDER BY ALL"
    expected = reference.execute(query).fetchall()
    detach(reference)
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake") as session:
        _run(session, script)
        assert session.sql(query).fetchall() == expected
    attach(reference, f"ducklake:{tmp_path}/ours.ducklake")
    assert reference.execute(query).fetchall() == expected
    detach(reference)


_WORDS = {"t": "i INTEGER, s VARCHAR", "u": "a INTEGER, b DOUBLE"}
_NUMBERS = st.one_of(st.none(), st.integers(-1000, 1000))


@st.composite
def _sequences(draw: st.DrawFn) -> list[str]:
    """Statements on two tables whose rows stay few enough to be kept in the catalog, a part of them in transactions.

    None changes rows that its own transaction wrote: see `test_rows_that_their_own_transaction_changes`.
    """
    statements = [f"CREATE TABLE {name} ({columns})" for name, columns in _WORDS.items()]
    in_transaction = False
    written: set[str] = set()
    for n in range(draw(st.integers(4, 12))):
        kind = draw(
            st.sampled_from(("insert", "insert", "insert", "update", "delete", "add", "rename", "make", "transaction"))
        )
        name = draw(st.sampled_from(sorted(_WORDS)))
        first, second = ("i", "s") if name == "t" else ("a", "b")
        number = draw(_NUMBERS)
        value = "NULL" if number is None else str(number)
        if kind in ("update", "delete") and name in written:
            continue
        if kind in ("insert", "update") and in_transaction:
            written.add(name)
        match kind:
            case "insert":
                other = "NULL" if draw(st.booleans()) else f"'{value}'" if name == "t" else f"{number or 0} / 8"
                statements.append(f"INSERT INTO {name} ({first}, {second}) VALUES ({value}, {other}), (-1, NULL)")
            case "update":
                statements.append(f"UPDATE {name} SET {first} = {value} WHERE {first} < 100")
            case "delete":
                statements.append(f"DELETE FROM {name} WHERE {first} > {number or 0}")
            case "add":
                statements.append(f"ALTER TABLE {name} ADD COLUMN c{n} INTEGER DEFAULT {number or 7}")
            case "rename":
                statements.append(f"CREATE TABLE r{n} (i INTEGER)")
                statements.append(f"ALTER TABLE r{n} RENAME TO q{n}")
            case "make":
                statements.append(f"CREATE OR REPLACE TABLE made AS SELECT {number or 0} AS x, '{n}' AS y")
            case "transaction":
                statements.append("COMMIT" if in_transaction else "BEGIN")
                in_transaction = not in_transaction
                written.clear()
    return [*statements, "COMMIT"] if in_transaction else statements


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=int(os.environ.get("DUCKLAKE_LAB_EXAMPLES", "8")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(statements=_sequences())
def test_random_sequences(
    statements: list[str],
    kind: str,
    new_catalog: Callable[..., str],
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
) -> None:
    number = next(_numbers)
    theirs = _by_the_reference(statements, new_catalog(kind, f"theirs{number}"), tmp_path, reference)
    uri = new_catalog(kind, f"ours{number}")
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/ours_data", engine="duckdb") as session:
        for statement in statements:
            session.sql(statement)
    _assert_equal(metadata(reference, uri), theirs)


def _start_spark(script: str, request: pytest.FixtureRequest) -> None:
    """Rows of files are deleted and changed by Spark; such scripts say so in their names."""
    if script.startswith("spark"):
        request.getfixturevalue("spark")


def _run(session: dl.Session, statements: list[str]) -> None:
    for statement in statements:
        session.sql(statement)


#: What the reference writes when it runs a script: the same for every test of it and of a kind of catalog.
_known: dict[tuple[str, str], dict[str, list[tuple[object, ...]]]] = {}


def _of_script(
    script: str, kind: str, make: Callable[[], str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> dict[str, list[tuple[object, ...]]]:
    if (script, kind) not in _known:
        _known[script, kind] = _by_the_reference(ALL[script], make(), tmp_path, reference)
    return _known[script, kind]


def _by_the_reference(
    script: list[str], uri: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> dict[str, list[tuple[object, ...]]]:
    attach(reference, uri, data_path=tmp_path / "theirs_data")
    for statement in script:
        reference.execute(statement)
    detach(reference)
    return metadata(reference, uri)


def _units(script: list[str]) -> Iterator[list[str]]:
    """The statements one by one, those of a transaction together."""
    open_: list[str] | None = None
    for statement in script:
        if statement.startswith("BEGIN"):
            open_ = []
        if open_ is None:
            yield [statement]
            continue
        open_.append(statement)
        if statement in ("COMMIT", "ROLLBACK"):
            yield open_
            open_ = None


def _assert_equal(ours: dict[str, list[tuple[object, ...]]], theirs: dict[str, list[tuple[object, ...]]]) -> None:
    assert ours.keys() == theirs.keys()
    for table, rows in theirs.items():
        assert ours[table] == rows, table
