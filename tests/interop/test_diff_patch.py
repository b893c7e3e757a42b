"""Patches of diffs, run by us and by the reference, make the one state of the other: every type, schema changes, keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.patching import CLIENTS, apply, contents, copied, opened
from tests.interop.test_handed_out import NESTED, query
from tests.type_matrix import VALUES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def session(folder: Path) -> Iterator[dl.Session]:
    with opened(folder) as session:
        yield session


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def check(
    session: dl.Session,
    reference: duckdb.DuckDBPyConnection,
    folder: Path,
    change: str,
    *,
    key: list[str] | None = None,
    names: tuple[str, str] = ("main.t", "main.t"),
    way_back: bool = True,
) -> tuple[str, str | None]:
    """Patches copies of the state before a change, and of the state after it; gives the patches."""
    before, after = names
    start = newest(session)
    early = copied(folder, "early")
    session.sql(change)
    late = copied(folder, "late")
    states = contents(reference, early, before), contents(reference, late, after)
    assert states[0] != states[1]
    diff = session.table(after).diff(start, key=key)
    patches = diff.patch(), diff.patch(revert=True) if way_back else None
    for by in CLIENTS:
        for patch, origin, name, state in (
            (patches[0], early, after, states[1]),
            (patches[1], late, before, states[0]),
        ):
            if patch is None:
                continue
            patched = copied(origin, "patched")
            apply(by, reference, patched, patch)
            found = contents(reference, patched, name)
            assert found == state, (by, patch)
            with opened(patched) as ours:
                (column, *_) = [one for one, _ in state[0]]
                read = ours.sql(f'SELECT count("{column}") FROM {name}').fetchall()
            assert read == [(sum(row[0] is not None for row in state[1]),)]
    return patches


#: Types whose values the reference does not inline within others.
ALONE = ("variant", "geometry")
_NESTABLE = [name for name in VALUES if name not in ALONE]
#: Types that share a table.
GROUPS = [*(tuple(_NESTABLE[at : at + 8]) for at in range(0, len(_NESTABLE), 8)), *((name,) for name in ALONE)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_every_type(
    session: dl.Session, reference: duckdb.DuckDBPyConnection, folder: Path, names: tuple[str, ...]
) -> None:
    """Each value at the edges of a type, and NULL, alone and in a list, a struct and a map."""
    shapes = ["itself"] if names[0] in ALONE else list(NESTED)
    columns = [f"v{at}_{shape}" for at in range(len(names)) for shape in shapes]
    parts = []
    for at, name in enumerate(names):
        joined = " JOIN ".join(
            f"({query(name, shape)}) AS {shape}_(i, v{at}_{shape}){' USING (i)' if shape != shapes[0] else ''}"
            for shape in shapes
        )
        parts.append(f"SELECT i + {at * 1000} AS i, {', '.join(f'v{at}_{shape}' for shape in shapes)} FROM {joined}")
    rows = " UNION ALL BY NAME ".join(parts)
    session.sql("CALL lake.set_option('data_inlining_row_limit', 1000)")
    session.sql(f"CREATE TABLE t AS {rows}; INSERT INTO t SELECT * REPLACE (i + 50 AS i) FROM ({rows})")
    sets = ", ".join(f"{column} = s.{column}" for column in columns)
    change = (
        f"UPDATE t SET {sets} FROM ({rows}) AS s WHERE s.i = t.i + 1; DELETE FROM t WHERE i % 1000 >= 50; "
        f"INSERT INTO t SELECT * REPLACE (i + 100 AS i) FROM ({rows})"
    )
    check(session, reference, folder, change)


TEXTS = "''' OR 1=1; --', 'two\nlines', 'a' || chr(13) || chr(10) || 'b', 'nul' || chr(0) || 'l', '😀 $x :y', '\\x00 \\n', '\u202e', ''"


def test_texts_and_names_with_anything_in_them(
    session: dl.Session, reference: duckdb.DuckDBPyConnection, folder: Path
) -> None:
    session.sql('CREATE SCHEMA "s ""1"""')
    name = '"s ""1"""."t\n; DROP"'
    session.sql(
        f'CREATE TABLE {name} ("select" VARCHAR, "a ""b""" STRUCT("x \'y\'" VARCHAR), t STRUCT(rid INTEGER), p VARCHAR[])'
    )
    session.sql(f"INSERT INTO {name} SELECT v, NULL, {{'rid': 1}}, [v] FROM (SELECT unnest([{TEXTS}]) AS v)")
    change = (
        f"UPDATE {name} SET \"a \"\"b\"\"\" = {{'x ''y''': \"select\"}}, t = {{'rid': 2}}, p = [p[1], p[1]]; "
        f'INSERT INTO {name} SELECT "select", NULL, NULL, [] FROM {name}; DELETE FROM {name} WHERE length("select") = 0'
    )
    patch, _ = check(session, reference, folder, change, names=(name, name))
    assert all(line.startswith("-- ") for line in patch.split("\n")[:5])


MAKE = "CREATE TABLE t AS SELECT i::INTEGER AS k, (i % 7)::INTEGER AS v, 'n' || i AS \"Name\", i / 4 AS f FROM range(40) r(i)"
CHANGES: dict[str, tuple[str, tuple[str, str], bool]] = {
    "added": ("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 5; UPDATE t SET more = 6 WHERE k < 3; INSERT INTO t (k) VALUES (99)", ("main.t", "main.t"), True),
    "added, of another default": ("ALTER TABLE t ADD COLUMN more DATE DEFAULT '2020-01-01'; ALTER TABLE t ALTER more SET DEFAULT '2021-01-01'; INSERT INTO t (k) VALUES (99)", ("main.t", "main.t"), True),
    "dropped": ("ALTER TABLE t DROP COLUMN v; DELETE FROM t WHERE k = 7", ("main.t", "main.t"), False),
    "put in the place of one": ("ALTER TABLE t DROP COLUMN f; ALTER TABLE t ADD COLUMN f VARCHAR; UPDATE t SET f = 'x' WHERE k = 1", ("main.t", "main.t"), False),
    "renamed": ('ALTER TABLE t RENAME v TO w; ALTER TABLE t RENAME TO "T 2"; UPDATE "T 2" SET w = w + 1', ("main.t", 'main."T 2"'), True),
    "renamed in a circle": ("ALTER TABLE t RENAME v TO w; ALTER TABLE t RENAME k TO v; ALTER TABLE t RENAME w TO k; UPDATE t SET k = k + 1 WHERE v = 2", ("main.t", "main.t"), True),
    "of another case": ('ALTER TABLE t RENAME "Name" TO x; ALTER TABLE t RENAME x TO name; UPDATE t SET name = NULL WHERE k = 3', ("main.t", "main.t"), True),
    "retyped": ("ALTER TABLE t ALTER v SET DATA TYPE BIGINT; UPDATE t SET v = 5000000000 WHERE k = 3", ("main.t", "main.t"), False),
    "strict": ("ALTER TABLE t ALTER k SET NOT NULL; INSERT INTO t VALUES (99, 1, NULL, NULL)", ("main.t", "main.t"), True),
    "only altered": ("ALTER TABLE t RENAME f TO g", ("main.t", "main.t"), True),
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("change", CHANGES)
def test_columns_that_were(
    session: dl.Session, reference: duckdb.DuckDBPyConnection, folder: Path, change: str
) -> None:
    session.sql(MAKE)
    sql, names, way_back = CHANGES[change]
    check(session, reference, folder, sql, names=names, way_back=way_back)


def test_strict_columns_become_loose(session: dl.Session, reference: duckdb.DuckDBPyConnection, folder: Path) -> None:
    session.sql(f"{MAKE}; ALTER TABLE t ALTER k SET NOT NULL")
    check(session, reference, folder, "ALTER TABLE t ALTER k DROP NOT NULL; UPDATE t SET k = NULL WHERE k > 30")


def test_rows_are_found_by_key(session: dl.Session, reference: duckdb.DuckDBPyConnection, folder: Path) -> None:
    session.sql('CREATE TABLE t (k INTEGER, "b c" VARCHAR, v DOUBLE)')
    session.sql(
        "INSERT INTO t SELECT i // 2, CASE WHEN i % 2 = 0 THEN 'even' END, i FROM range(30) r(i); INSERT INTO t VALUES (NULL, NULL, 1)"
    )
    change = "UPDATE t SET v = 'nan' WHERE k IS NULL OR k < 4; DELETE FROM t WHERE k > 12 AND \"b c\" IS NULL; INSERT INTO t VALUES (40, '', -0.5), (NULL, 'n', NULL)"
    patch, _ = check(session, reference, folder, change, key=["k", "B C"])
    assert "rowid" not in patch


def test_two_tables(session: dl.Session, reference: duckdb.DuckDBPyConnection, folder: Path) -> None:
    session.sql("CREATE TABLE a (id INTEGER, x INTEGER, gone INTEGER, s STRUCT(f INTEGER))")
    session.sql("INSERT INTO a VALUES (1, 1, 0, {'f': 1}), (2, 2, 0, NULL), (9, 9, 0, NULL)")
    session.sql(
        "CREATE TABLE b (X BIGINT, id INTEGER, s STRUCT(f INTEGER)); ALTER TABLE b ADD COLUMN more DATE DEFAULT '2020-01-01'"
    )
    session.sql("INSERT INTO b VALUES (1, 1, {'f': 1}, NULL), (5, 2, {'f': 2}, '2020-01-01'), (6, 3, NULL, NULL)")
    diff = session.table("a").diff(newest(session), other="b", key=["id"])
    assert (diff.summary.unchanged, diff.summary.updated) == (1, 1)
    patch = diff.patch()
    rows = session.sql("SELECT id, x, s, more FROM b ORDER BY ALL").fetchall()
    for by in CLIENTS:
        patched = copied(folder, "patched")
        apply(by, reference, patched, patch)
        with opened(patched) as ours:
            assert ours.sql("SELECT id, x, s, more FROM a ORDER BY ALL").fetchall() == rows
            assert [column.name for column in ours.table("a").schema] == ["id", "x", "s", "more"]
            ours.sql("INSERT INTO a (id) VALUES (50)")
            assert str(ours.sql("SELECT more FROM a WHERE id = 50").fetchall()[0][0]) == "2020-01-01"
