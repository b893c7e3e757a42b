"""Reverts of changes of definitions: columns, keys, tables, views, macros, schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    """A lake with `t (i, v, w)` of 30 rows in a file and one inlined."""
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, v VARCHAR DEFAULT 'd', w INTEGER)")
        session.sql("INSERT INTO t SELECT i, 'v' || i, i FROM range(30) r(i)")
        session.sql("INSERT INTO t VALUES (100, 'inlined', 100)")
        yield session


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def rows(session: dl.Session, sql: str = "SELECT rowid, * FROM t ORDER BY ALL") -> list[Any]:
    return session.sql(sql).fetchall()


def columns(session: dl.Session, table: str = "t") -> list[tuple[str, str]]:
    return [(column.name, column.data_type.sql()) for column in session.table(table).schema]


def changed(session: dl.Session, *statements: str) -> int:
    """Run statements as one snapshot, and return its id."""
    with session.transaction():
        for statement in statements:
            session.sql(statement)
    return newest(session)


def definition(session: dl.Session) -> Any:
    """The table as it is, without ids of its keys."""
    table = session.state().table("main", "t")
    keys = (table.partition.fields if table.partition else (), table.sort.keys if table.sort else ())
    return table.name, table.columns, table.comment, keys


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 7",),
        ("ALTER TABLE t ADD COLUMN x INTEGER", "UPDATE t SET x = i WHERE i < 5"),
        ("ALTER TABLE t DROP COLUMN w",),
        ("ALTER TABLE t DROP COLUMN w", "UPDATE t SET v = 'changed' WHERE i < 20", "DELETE FROM t WHERE i > 25"),
        ("ALTER TABLE t RENAME COLUMN w TO x",),
        ("ALTER TABLE t DROP COLUMN v", "ALTER TABLE t RENAME COLUMN w TO v"),
        ("ALTER TABLE t ALTER COLUMN v SET DEFAULT 'other'",),
        ("ALTER TABLE t ALTER COLUMN v DROP DEFAULT",),
        ("ALTER TABLE t ALTER COLUMN i SET NOT NULL",),
        ("ALTER TABLE t ALTER COLUMN i SET DATA TYPE BIGINT",),
        ("COMMENT ON TABLE t IS 'about'", "COMMENT ON COLUMN t.v IS 'a column'"),
        ("ALTER TABLE t SET PARTITIONED BY (w, bucket(4, i))",),
        ("ALTER TABLE t SET SORTED BY (w DESC, i)",),
        ("ALTER TABLE t SET PARTITIONED BY (w)", "INSERT INTO t SELECT i, 'p', i % 2 FROM range(20) r(i)"),
    ],
)
def test_definitions_go_back_and_forth(session: dl.Session, statements: tuple[str, ...]) -> None:
    before = definition(session), rows(session)
    made = changed(session, *statements)
    after = definition(session), rows(session)
    back = session.revert(made)
    assert (definition(session), rows(session)) == before
    assert back is not None
    session.revert(back.snapshot_id)
    assert (definition(session), rows(session)) == after


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t RESET PARTITIONED BY",
        "ALTER TABLE t RESET SORTED BY",
        "ALTER TABLE t SET PARTITIONED BY (i)",
        "ALTER TABLE t ALTER COLUMN i DROP NOT NULL",
        "COMMENT ON TABLE t IS NULL",
    ],
)
def test_keys_and_comments_come_back(session: dl.Session, statement: str) -> None:
    changed(
        session,
        "ALTER TABLE t SET PARTITIONED BY (w)",
        "ALTER TABLE t SET SORTED BY (i)",
        "COMMENT ON TABLE t IS 'about'",
        "ALTER TABLE t ALTER COLUMN i SET NOT NULL",
    )
    before = definition(session)
    session.sql(statement)
    session.revert(newest(session))
    assert definition(session) == before
    session.sql("INSERT INTO t SELECT i, 'p', i % 2 FROM range(20) r(i)")
    assert len(session.table("t").files()) == 3, "one for each partition"


def test_a_dropped_column_comes_back_with_its_values(session: dl.Session) -> None:
    """Through rows that were updated, rewritten and inserted since."""
    before = rows(session)
    made = changed(session, "ALTER TABLE t DROP COLUMN w")
    session.sql("UPDATE t SET v = 'later' WHERE i < 5")
    session.sql("INSERT INTO t VALUES (200, 'new'), (201, 'new')")
    session.sql("DELETE FROM t WHERE i = 29")
    session.sql("CALL lake.flush_inlined_data()")
    session.sql("CALL lake.rewrite_data_files(delete_threshold => 0)")
    session.sql("CALL lake.merge_adjacent_files()")
    session.revert(made)
    expected = [(row, i, "later" if i < 5 else v, w) for row, i, v, w in before if i != 29]
    found = rows(session)
    assert [row for row in found if row[1] < 200] == expected
    assert [row[1:] for row in found if row[1] >= 200] == [(200, "new", None), (201, "new", None)]


def test_values_of_later_rows_in_an_added_column_are_a_conflict(session: dl.Session) -> None:
    made = changed(session, "ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 7")
    session.sql("INSERT INTO t (i) VALUES (200)")
    assert session.revert_preview(made).schema[0].kind == "dropped"
    session.sql("INSERT INTO t (i, x) VALUES (201, 8)")
    session.sql("UPDATE t SET x = 9 WHERE i < 3")
    with pytest.raises(dl.RevertConflictError, match="column added, and changed since") as caught:
        session.revert(made)
    (conflict,) = caught.value.conflicts
    assert (conflict.row_id, conflict.column, conflict.now) == (None, "x", "x INTEGER, 4 values")
    assert session.revert(made, on_conflict="keep") is None
    session.revert(made, on_conflict={"t": {"x": "revert"}})
    assert columns(session) == [("i", "INTEGER"), ("v", "VARCHAR"), ("w", "INTEGER")]


def test_a_name_that_changed_again_is_a_conflict(session: dl.Session) -> None:
    made = changed(session, "ALTER TABLE t RENAME COLUMN w TO x")
    session.sql("ALTER TABLE t RENAME COLUMN x TO y")
    with pytest.raises(dl.RevertConflictError) as caught:
        session.revert(made)
    (conflict,) = caught.value.conflicts
    assert (conflict.column, conflict.base, conflict.then, conflict.now) == ("y", "w", "x", "y")
    assert session.revert(made, on_conflict="keep") is None
    session.revert(made, on_conflict="revert")
    assert [name for name, _ in columns(session)] == ["i", "v", "w"]


def test_a_name_that_is_taken_is_refused(session: dl.Session) -> None:
    made = changed(session, "ALTER TABLE t DROP COLUMN w")
    session.sql("ALTER TABLE t ADD COLUMN w VARCHAR")
    with pytest.raises(dl.EntryExistsError, match=r"Column w of main.t cannot come back"):
        session.revert(made)
    assert newest(session) == made + 1


def test_types_are_not_narrowed_once_rows_were_written(session: dl.Session) -> None:
    made = changed(session, "ALTER TABLE t ALTER COLUMN i SET DATA TYPE BIGINT")
    session.sql("INSERT INTO t VALUES (5000000000, 'big', 0)")
    with pytest.raises(dl.UnsupportedFeatureError, match=r"The type of column i of main.t is not changed back"):
        session.revert(made)
    session.sql("DELETE FROM t WHERE i > 1000000")
    session.revert(made)
    assert columns(session)[0] == ("i", "INTEGER")
    assert session.sql("SELECT sum(i) FROM t WHERE i < 3").fetchall() == [(3,)]


def test_fields_go_back_where_no_row_was_written(session: dl.Session) -> None:
    session.sql("CREATE TABLE s AS SELECT {'a': i, 'b': 'x' || i} AS r FROM range(20) r(i)")
    before = rows(session, "FROM s ORDER BY r")
    for statement in ("ADD COLUMN r.c INTEGER", "DROP COLUMN r.b", "RENAME COLUMN r.a TO z"):
        session.sql(f"ALTER TABLE s {statement}")
        made = newest(session)
        session.revert(made)
        assert rows(session, "FROM s ORDER BY r") == before
    session.sql("ALTER TABLE s DROP COLUMN r.b")
    made = newest(session)
    session.sql("INSERT INTO s SELECT {'a': i} FROM range(20) r(i)")
    with pytest.raises(dl.UnsupportedFeatureError, match="The type of column r"):
        session.revert(made)


def test_not_null_comes_back_unless_a_row_has_null(session: dl.Session) -> None:
    session.sql("ALTER TABLE t ALTER COLUMN v SET NOT NULL")
    made = changed(session, "ALTER TABLE t ALTER COLUMN v DROP NOT NULL", "UPDATE t SET v = NULL WHERE i = 1")
    session.sql("UPDATE t SET v = NULL WHERE i = 2")
    with pytest.raises(dl.ConstraintError, match=r"Column v of main.t cannot become NOT NULL"):
        session.revert(made)
    session.sql("DELETE FROM t WHERE i = 2")
    session.revert(made)
    assert session.sql("SELECT v FROM t WHERE i = 1").fetchall() == [("v1",)]
    with pytest.raises(dl.ConstraintError):
        session.sql("INSERT INTO t VALUES (1, NULL, 1)")


def test_a_column_that_was_dropped_since_is_not_compared(session: dl.Session) -> None:
    made = changed(session, "UPDATE t SET v = 'x', w = 0 WHERE i < 5")
    session.sql("ALTER TABLE t DROP COLUMN v")
    session.revert(made)
    assert session.sql("SELECT i, w FROM t WHERE i < 3 ORDER BY i").fetchall() == [(0, 0), (1, 1), (2, 2)]


def test_the_last_column_cannot_go(session: dl.Session) -> None:
    made = changed(session, "ALTER TABLE t ADD COLUMN x INTEGER")
    for name in "ivw":
        session.sql(f"ALTER TABLE t DROP COLUMN {name}")
    with pytest.raises(dl.UnsupportedFeatureError, match="a table needs one"):
        session.revert(made)


# Tables


def test_a_created_table_goes_unless_it_changed(session: dl.Session) -> None:
    made = changed(session, "CREATE TABLE u AS FROM t")
    session.sql("CALL lake.flush_inlined_data()")
    assert session.revert_preview(made).summary.deleted == 31
    session.sql("UPDATE u SET v = 'mine' WHERE i = 1")
    with pytest.raises(dl.RevertConflictError, match="table created, and changed since"):
        session.revert(made)
    assert session.revert(made, on_conflict="keep") is None
    session.revert(made, on_conflict={"u": "revert"})
    assert [name for _, name in session.state().tables.names.values()] == ["t"]
    assert session.revert(made) is None


def test_a_dropped_table_comes_back(session: dl.Session) -> None:
    session.sql("ALTER TABLE t SET PARTITIONED BY (w)")
    session.sql("ALTER TABLE t SET SORTED BY (i)")
    session.sql("COMMENT ON COLUMN t.v IS 'a column'")
    session.sql("INSERT INTO t SELECT i, 'p', i % 2 FROM range(20) r(i)")
    before = definition(session), rows(session)
    made = changed(session, "DROP TABLE t")
    session.revert(made)
    assert (definition(session), rows(session)) == before
    session.sql("INSERT INTO t SELECT i, 'p', i % 2 FROM range(20) r(i)")
    session.sql("DELETE FROM t WHERE w = 1")
    again = newest(session)
    session.revert(again)
    session.revert(newest(session))
    assert session.sql("SELECT count(*) FROM t WHERE w = 1").fetchall() == [(0,)]


def test_a_replaced_table_is_the_former_one_again(session: dl.Session) -> None:
    before = rows(session)
    made = changed(session, "CREATE OR REPLACE TABLE t AS SELECT 1 AS other")
    back = session.revert(made)
    assert rows(session) == before
    assert back is not None
    session.revert(back.snapshot_id)
    assert session.sql("FROM t").fetchall() == [(1,)]


def test_a_renamed_table_goes_back(session: dl.Session) -> None:
    made = changed(session, "ALTER TABLE t RENAME TO u", "CREATE TABLE t AS SELECT 1 AS i")
    session.sql("INSERT INTO u VALUES (200, 'late', 1)")
    session.revert(made)
    assert [name for _, name in session.state().tables.names.values()] == ["t"]
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(32,)]
    made = changed(session, "ALTER TABLE t RENAME TO u")
    session.sql("CREATE TABLE t AS SELECT 1 AS i")
    with pytest.raises(dl.EntryExistsError):
        session.revert(made)


def test_changes_of_a_table_that_was_dropped_since_are_a_conflict(session: dl.Session) -> None:
    made = changed(session, "DELETE FROM t WHERE i < 5")
    session.sql("DROP TABLE t")
    with pytest.raises(dl.RevertConflictError, match=r"main.t .*table dropped since"):
        session.revert(made)
    assert session.revert(made, on_conflict="keep") is None
    with pytest.raises(dl.UnsupportedFeatureError, match="restore it first"):
        session.revert(made, on_conflict="revert")


# Schemas, views, macros


def test_schemas_views_and_macros_go_and_come_back(session: dl.Session) -> None:
    made = changed(
        session,
        "CREATE SCHEMA s",
        "CREATE TABLE s.u AS FROM t",
        "CREATE VIEW s.few AS FROM t WHERE i < 3",
        "CREATE MACRO twice(x) AS 2 * x",
        "CREATE MACRO first_rows(n) AS TABLE SELECT * FROM t LIMIT n",
    )
    query = "SELECT twice(4), (SELECT count(*) FROM s.few), (SELECT count(*) FROM first_rows(2))"
    back = session.revert(made)
    assert back is not None
    assert list(session.state().schemas) == [0] and not session.state().views and not session.state().macros
    session.revert(back.snapshot_id)
    assert session.sql(query).fetchall() == [(8, 3, 2)]
    dropped = changed(session, "DROP SCHEMA s CASCADE", "DROP MACRO twice", "DROP MACRO TABLE first_rows")
    session.revert(dropped)
    assert session.sql(query).fetchall() == [(8, 3, 2)]
    assert len(session.state().macros) == 2


def test_a_schema_that_was_filled_since_is_a_conflict(session: dl.Session) -> None:
    made = changed(session, "CREATE SCHEMA s")
    session.sql("CREATE TABLE s.u AS FROM t")
    with pytest.raises(dl.RevertConflictError, match="schema created, and filled since"):
        session.revert(made)
    assert session.revert(made, on_conflict="keep") is None
    session.revert(made, on_conflict="revert")
    assert session.state().find_schema("s") is None


def test_a_view_that_changed_again_is_a_conflict(session: dl.Session) -> None:
    session.sql("CREATE VIEW few AS FROM t WHERE i < 3")
    made = changed(session, "COMMENT ON VIEW few IS 'a few'")
    session.sql("ALTER VIEW few RENAME TO other")
    with pytest.raises(dl.RevertConflictError, match="view changed since"):
        session.revert(made)
    assert session.revert(made, on_conflict="keep") is None
    session.revert(made, on_conflict="revert")
    (view,) = session.state().views.values()
    assert (view.name, view.comment) == ("few", None)
    replaced = changed(session, "CREATE OR REPLACE VIEW few AS SELECT 1 AS one")
    session.revert(replaced)
    assert session.sql("SELECT count(*) FROM few").fetchall() == [(3,)]


def test_a_preview_of_several_tables_is_that_of_the_lake(session: dl.Session) -> None:
    made = changed(session, "CREATE TABLE u AS FROM t", "DELETE FROM t WHERE i < 5")
    diff = session.revert_preview(made)
    assert isinstance(diff, dl.LakeDiff)
    assert diff.end is None and diff.to_dict()["end"] is None
    assert [(one.name, one.kind, one.summary.deleted, one.summary.inserted) for one in diff] == [
        ("main.u", "dropped", 31, 0),
        ("main.t", "changed", 0, 5),
    ]
    assert "uncommitted" in diff._repr_html_() and "uncommitted" in repr(diff)
    assert newest(session) == made


@pytest.mark.parametrize("rows", [4, 400])
def test_a_dropped_column_comes_back_for_rows_that_came_back(session: dl.Session, rows: int) -> None:
    session.sql(f"CREATE TABLE b (i INTEGER, v VARCHAR); INSERT INTO b SELECT i, 'v' || i FROM range({rows}) r(i)")
    session.sql("UPDATE b SET v = 'last' WHERE i = 1")
    session.sql("DELETE FROM b WHERE i < 2")
    deleted = newest(session)
    session.sql("DELETE FROM b WHERE i = 3")
    session.sql("ALTER TABLE b DROP COLUMN v")
    dropped = newest(session)
    session.revert(deleted)
    session.sql("INSERT INTO b VALUES (1000)")
    session.revert(dropped)
    found = session.sql("FROM b WHERE i < 4 OR i = 1000 ORDER BY i").fetchall()
    assert found == [(0, "v0"), (1, "last"), (2, "v2"), (1000, None)]


@pytest.mark.parametrize(
    ("dropped", "taken"),
    [
        ("DROP TABLE p", "CREATE TABLE p (other INTEGER)"),
        ("DROP MACRO m", "CREATE MACRO m(x) AS x"),
        ("DROP SCHEMA s", "CREATE SCHEMA s"),
        ("DROP VIEW s.v", "DROP SCHEMA s"),
    ],
)
def test_half_of_a_revert_is_never_committed(session: dl.Session, dropped: str, taken: str) -> None:
    session.sql("CREATE TABLE p (i INTEGER); CREATE MACRO m(x) AS 2 * x; CREATE SCHEMA s")
    if "VIEW" in dropped:
        session.sql("CREATE VIEW s.v AS SELECT 1 AS i")
    session.sql(f"BEGIN; UPDATE t SET w = -1 WHERE i < 10; {dropped}; COMMIT")
    made = newest(session)
    session.sql(taken)
    before = newest(session)
    with pytest.raises((dl.EntryExistsError, dl.EntryNotFoundError)):
        session.revert(made)
    session.sql("BEGIN")
    with pytest.raises((dl.EntryExistsError, dl.EntryNotFoundError)):
        session.revert(made)
    session.sql("COMMIT")
    assert newest(session) == before
    assert rows(session, "SELECT count(*) FROM t WHERE w = -1") == [(10,)]
