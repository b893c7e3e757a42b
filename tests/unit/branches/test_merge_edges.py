"""Merges after unusual histories: ids given out on both sides, names that change places, entries that came or came back before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.catalog.branches.branch import read_branch
from ducklake_lab.catalog.branches.registry import ROWS
from tests.unit.branches.test_merging import on_branch, one, rows


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, 0 AS a, 1 AS b FROM range(20) r(i)")
        session.branch("fix")
        yield session


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_file_with_a_column_that_went_again_is_written_anew(session: dl.Session, when: str) -> None:
    add = "ALTER TABLE t ADD COLUMN mine INTEGER DEFAULT 5"
    if when == "before":
        session.sql(add)
    on_branch(
        session,
        "ALTER TABLE t ADD COLUMN x INTEGER",
        "INSERT INTO t SELECT i, 0, 1, 77 FROM range(100, 200) r(i)",
        "ALTER TABLE t DROP COLUMN x",
        "CREATE TABLE n AS SELECT i::INTEGER AS i, 77 AS x FROM range(100) r(i); ALTER TABLE n DROP COLUMN x",
    )
    session.merge("fix")
    if when == "after":
        session.sql(add)
    session.sql("ALTER TABLE n ADD COLUMN mine INTEGER DEFAULT 5")
    assert rows(session, "SELECT mine, count(*) FROM t GROUP BY mine") == [(5, 120)]
    assert rows(session, "SELECT mine, count(*) FROM n GROUP BY mine") == [(5, 100)]


def test_an_interval_of_another_kind_is_a_change(session: dl.Session) -> None:
    session.sql("CREATE TABLE p AS SELECT 1 AS k, INTERVAL '1 month' AS x, [INTERVAL '1 day'] AS y, 0 AS n")
    session.branch("more")
    session.sql("UPDATE p SET n = 1")
    on_branch(session, "UPDATE p SET x = INTERVAL '30 days', y = [INTERVAL '24 hours']", name="more")
    session.merge("more")
    assert rows(session, "SELECT x::VARCHAR, y::VARCHAR, n FROM p") == [("30 days", "['24:00:00']", 1)]


def test_the_sign_of_a_zero_is_a_change(session: dl.Session) -> None:
    zeros = {
        "x": "'0.0'::DOUBLE",
        "f": "'0.0'::FLOAT",
        "l": "['0.0'::DOUBLE, NULL]",
        "s": "{'a': '0.0'::FLOAT, 'b': 1}",
        "m": "MAP {'0.0'::DOUBLE: 1}",
    }
    shown = ", ".join(f"{value} AS {name}" for name, value in zeros.items())
    session.sql("CALL set_option('data_inlining_row_limit', 0)")  # DuckDB's storage takes both zeros for one
    session.sql(
        f"CREATE TABLE p AS SELECT 1 AS k, {shown}, 0 AS n UNION ALL SELECT 2, 1, 1, [1], {{'a': 1, 'b': 1}}, MAP {{1: 1}}, 0"
    )
    session.branch("more")
    session.sql("UPDATE p SET n = 1")
    changed = ", ".join(f"{name} = {value.replace('0.0', '-0.0')}" for name, value in zeros.items())
    on_branch(session, f"UPDATE p SET {changed} WHERE k = 1", name="more")
    assert session.review("more").tables.table("p").diff.summary.cells == 5
    session.merge("more")
    assert rows(session, "SELECT COLUMNS(* EXCLUDE (k, n))::VARCHAR, n FROM p WHERE k = 1") == [
        ("-0.0", "-0.0", "[-0.0, NULL]", "{'a': -0.0, 'b': 1}", "{-0.0=1}", 1)
    ]


def test_conflicts_of_thousands_of_columns_are_counted(session: dl.Session) -> None:
    names = [f"c{number}" for number in range(1200)]
    session.sql(f"CREATE TABLE wide AS SELECT 1 AS k, {', '.join(f'0 AS {name}' for name in names)}")
    session.branch("more")
    session.sql(f"UPDATE wide SET {', '.join(f'{name} = 1' for name in names)}")
    on_branch(session, f"UPDATE wide SET {', '.join(f'{name} = 2' for name in names)}", name="more")
    with pytest.raises(dl.MergeConflictError) as caught:
        session.merge("more")
    assert caught.value.total == len(names)


def test_rows_that_came_before_may_move(session: dl.Session) -> None:
    on_branch(session, "INSERT INTO t SELECT i, 0, 1 FROM range(100, 200) r(i)", "DELETE FROM t WHERE i >= 150")
    session.merge("fix")
    on_branch(
        session,
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
        "INSERT INTO t SELECT i, 0, 1 FROM range(300, 350) r(i)",
    )
    session.merge("fix")
    assert rows(session, "SELECT count(*), count(DISTINCT i), count(DISTINCT rowid) FROM t") == [(120, 120, 120)]
    assert session.merge("fix") is None
    on_branch(session, "UPDATE t SET a = 1 WHERE i IN (100, 101)")
    with pytest.raises(dl.UnsupportedFeatureError, match=r"2 rows of main\.t came with an earlier merge"):
        session.merge("fix")


# Definitions


def test_a_definition_is_merged_since_the_last_merge(session: dl.Session) -> None:
    on_branch(session, "ALTER TABLE t RENAME COLUMN a TO named")
    session.merge("fix")
    session.sql("ALTER TABLE t RENAME COLUMN named TO again")
    on_branch(session, "INSERT INTO t VALUES (100, 1, 1)")
    session.merge("fix")
    assert session.sql("FROM t").columns == ["i", "again", "b"]


def test_a_definition_that_was_reverted_stays_so(session: dl.Session) -> None:
    on_branch(session, "ALTER TABLE t RENAME COLUMN a TO named")
    made = session.merge("fix")
    assert made is not None
    session.revert(made.snapshot_id)
    on_branch(session, "INSERT INTO t VALUES (100, 1, 1)")
    session.merge("fix")
    assert session.sql("FROM t").columns == ["i", "a", "b"]


def test_a_column_that_came_and_went_is_refused(session: dl.Session) -> None:
    on_branch(session, "ALTER TABLE t ADD COLUMN x INTEGER")
    session.merge("fix")
    on_branch(session, "ALTER TABLE t DROP COLUMN x")
    with pytest.raises(dl.UnsupportedFeatureError, match="has columns that came on the branch"):
        session.merge("fix")


def test_a_type_that_does_not_hold_values_of_a_side_is_refused(session: dl.Session) -> None:
    session.sql("ALTER TABLE t ALTER a TYPE BIGINT; UPDATE t SET a = 5000000000 WHERE i = 1")
    on_branch(session, "ALTER TABLE t ALTER a TYPE DOUBLE; UPDATE t SET a = 0.5 WHERE i = 2")
    with pytest.raises(dl.MergeConflictError, match="type changed on both sides"):
        session.merge("fix")
    with pytest.raises(dl.UnsupportedFeatureError, match=r"Column a of main\.t cannot be BIGINT"):
        session.merge("fix", on_conflict="ours")
    session.merge("fix", on_conflict="theirs")
    assert rows(session, "SELECT i, a FROM t WHERE i IN (1, 2, 3) ORDER BY i") == [(1, 5e9), (2, 0.5), (3, 0.0)]


# Names


def test_tables_and_views_change_places(session: dl.Session) -> None:
    session.sql("CREATE TABLE u AS SELECT 'u' AS x; CREATE VIEW v AS SELECT 'v' AS x; CREATE VIEW w AS SELECT 'w' AS x")
    session.branch("more")
    swap = "ALTER {0} {1} RENAME TO z; ALTER {0} {2} RENAME TO {1}; ALTER {0} z RENAME TO {2}"
    on_branch(session, swap.format("TABLE", "t", "u"), swap.format("VIEW", "v", "w"), name="more")
    session.merge("more")
    assert one(session, "FROM t") == "u" and one(session, "SELECT count(*) FROM u") == 20
    assert (one(session, "FROM v"), one(session, "FROM w")) == ("w", "v")


def test_a_name_that_another_table_has_is_refused(session: dl.Session) -> None:
    session.sql("CREATE TABLE named AS SELECT 1 AS a")
    on_branch(session, "ALTER TABLE t RENAME TO named")
    with pytest.raises(dl.EntryExistsError, match=r"main\.named cannot come from the branch"):
        session.merge("fix")


def test_rules_know_every_name_of_a_column(session: dl.Session) -> None:
    session.sql("ALTER TABLE t DROP COLUMN b; UPDATE t SET a = 5")
    on_branch(session, "UPDATE t SET a = 6 WHERE i = 3; ALTER TABLE t RENAME COLUMN a TO named")
    with pytest.raises(dl.MergeConflictError):
        session.merge("fix", on_conflict={"t": {3: {"b": "theirs"}}})
    session.merge("fix", on_conflict={"t": {3: {"named": "theirs"}}})
    assert one(session, "SELECT named FROM t WHERE i = 3") == 6


@pytest.mark.parametrize("name", ["a.b", "main.a.b"])
def test_rules_for_a_table_whose_name_has_a_dot(session: dl.Session, name: str) -> None:
    session.sql('CREATE TABLE "a.b" AS SELECT 1 AS k, 0 AS v; CREATE TABLE b AS SELECT 1 AS k, 0 AS v')
    session.branch("more")
    session.sql('UPDATE "a.b" SET v = 1')
    on_branch(session, 'UPDATE "a.b" SET v = 2; UPDATE b SET v = 2', name="more")
    with pytest.raises(dl.MergeConflictError, match=r"main\.a\.b"):
        session.merge("more", on_conflict={"b": "theirs"})
    session.merge("more", on_conflict={name: "theirs"})
    assert one(session, 'SELECT v FROM "a.b"') == 2


# Entries


def test_entries_that_came_before_and_went_are_refused_until_the_lake_drops_them(session: dl.Session) -> None:
    on_branch(
        session,
        "CREATE TABLE u AS SELECT 1 AS a; CREATE VIEW v AS SELECT 1 AS a; CREATE MACRO f(x) AS x; CREATE SCHEMA s",
    )
    session.merge("fix")
    drops = {"main.u": "DROP TABLE u", "main.v": "DROP VIEW v", "main.f": "DROP MACRO f", "s": "DROP SCHEMA s"}
    on_branch(session, *drops.values(), "INSERT INTO t VALUES (100, 1, 1)")
    while drops:
        with pytest.raises(
            dl.UnsupportedFeatureError, match=r"came with an earlier merge .* and was dropped"
        ) as caught:
            session.merge("fix")
        session.sql(drops.pop(str(caught.value).partition(" ")[0]))
    session.merge("fix")
    assert one(session, "SELECT count(*) FROM t") == 21


def test_views_that_came_before_are_replaced_or_refused(session: dl.Session) -> None:
    on_branch(session, "CREATE VIEW v AS SELECT 1 AS a")
    session.merge("fix")
    on_branch(session, "CREATE OR REPLACE VIEW v AS SELECT 2 AS a")
    session.merge("fix")
    assert one(session, "FROM v") == 2
    on_branch(session, "COMMENT ON VIEW v IS 'x'")
    with pytest.raises(dl.UnsupportedFeatureError, match=r"main\.v came with an earlier merge .* was changed"):
        session.merge("fix")


@pytest.mark.parametrize("rule", ["ours", "theirs"])
def test_a_schema_that_the_lake_dropped_and_the_branch_filled(session: dl.Session, rule: str) -> None:
    session.sql("CREATE SCHEMA s")
    session.branch("more")
    session.sql("DROP SCHEMA s")
    on_branch(session, "CREATE TABLE s.x AS SELECT 7 AS a", name="more")
    with pytest.raises(dl.MergeConflictError, match=r"s \(schema filled on the branch, dropped in the lake\)"):
        session.merge("more")
    session.merge("more", on_conflict={"s": rule})
    assert ("x" in [info.table.name for info in session.tables()]) == (rule == "theirs")
    if rule == "theirs":
        assert one(session, "FROM s.x") == 7


@pytest.mark.parametrize(("rule", "count"), [("ours", 20), ("theirs", 21)])
def test_a_table_that_came_back_on_both_sides(session: dl.Session, rule: str, count: int) -> None:
    at = session.current_snapshot().snapshot_id
    session.sql("DROP TABLE t")
    session.branch("more")
    session.restore("t", at)
    session.switch("more")
    session.restore("t", at)
    session.sql("INSERT INTO t VALUES (100, 1, 1)")
    session.switch(None)
    with pytest.raises(dl.MergeConflictError, match=r"main\.t \(name given on both sides\)"):
        session.merge("more")
    session.merge("more", on_conflict=rule)
    assert one(session, "SELECT count(*) FROM t") == count


def test_rows_that_came_back_on_both_sides(session: dl.Session) -> None:
    at = session.current_snapshot().snapshot_id
    session.sql("DELETE FROM t WHERE i < 5")
    session.branch("more")
    session.restore("t", at)
    session.sql("UPDATE t SET b = 8 WHERE i = 3")
    session.switch("more")
    session.restore("t", at)
    session.sql("UPDATE t SET a = 9 WHERE i = 2; UPDATE t SET b = 7 WHERE i = 3")
    session.switch(None)
    with pytest.raises(dl.MergeConflictError) as caught:
        session.merge("more")
    found = {(c.row_id, c.column, c.base, c.ours, c.theirs) for c in caught.value.conflicts}
    assert found == {(2, "a", None, 0, 9), (3, "b", None, 8, 7)}
    session.merge("more", on_conflict={"t": {"a": "theirs", "b": "ours"}})
    assert rows(session, "SELECT i, a, b FROM t WHERE i < 4 ORDER BY i") == [(0, 0, 1), (1, 0, 1), (2, 9, 1), (3, 0, 8)]


# Hostile catalogs


@pytest.mark.parametrize("value", [None, "x:y", "1", "1:-5", "1:9999999999999999999", "٣:٤"])
def test_a_branch_that_does_not_know_its_new_rows_is_refused(tmp_path: Path, value: str | None) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS a")
        session.branch("fix")
        on_branch(session, "UPDATE t SET a = 2")
        with duckdb.connect(f"{tmp_path}/lake.ducklake.branches/fix.ducklake") as catalog:
            catalog.execute("DELETE FROM ducklake_metadata WHERE key = ?", [ROWS])
            if value is not None:
                catalog.execute("INSERT INTO ducklake_metadata (key, value) VALUES (?, ?)", [ROWS, value])
        with pytest.raises(dl.DuckLakeError, match=f"option {ROWS} is"):
            session.merge("fix")


def test_a_value_in_a_new_column_of_a_row_that_the_lake_deleted_is_a_conflict(session: dl.Session) -> None:
    session.sql("DELETE FROM t WHERE i IN (1, 2)")
    on_branch(session, "ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 4; UPDATE t SET x = 5 WHERE i = 1")
    with pytest.raises(dl.MergeConflictError) as caught:
        session.merge("fix")
    found = [(c.row_id, c.column, c.base, c.ours, c.theirs) for c in caught.value.conflicts]
    assert found == [(1, None, {"x": 4}, None, {"x": 5})]
    session.merge("fix", on_conflict="theirs")
    assert rows(session, "SELECT i, x FROM t WHERE i < 4 ORDER BY i") == [(0, 4), (1, 5), (3, 4)]


@pytest.mark.parametrize("side", ["lake", "branch"])
def test_a_field_that_one_side_dropped_and_the_other_wrote_is_a_conflict(session: dl.Session, side: str) -> None:
    session.sql("CREATE TABLE p AS SELECT i AS k, {'a': i, 'b': {'x': i, 'y': 0}} AS s FROM range(20) r(i)")
    session.branch("more")
    drop, write = "ALTER TABLE p DROP COLUMN s.b.x", "UPDATE p SET s = {'a': k, 'b': {'x': -1, 'y': 0}} WHERE k = 1"
    session.sql(drop if side == "lake" else write)
    on_branch(session, write if side == "lake" else drop, name="more")
    dropped, filled = ("lake", "branch") if side == "lake" else ("branch", "lake")
    with pytest.raises(dl.MergeConflictError) as caught:
        session.merge("more")
    (found,) = caught.value.conflicts
    assert found.column == "s"
    assert f"dropped {'in' if dropped == 'lake' else 'on'} the {dropped}" in found.reason
    assert "1 values" in str(found.ours if filled == "lake" else found.theirs)
    session.merge("more", on_conflict="ours")
    value = {"a": 1, "b": {"y": 0} if side == "lake" else {"x": -1, "y": 0}}
    assert one(session, "SELECT s FROM p WHERE k = 1") == value


def test_a_field_that_one_side_dropped_goes_where_the_other_wrote_another(session: dl.Session) -> None:
    session.sql("CREATE TABLE p AS SELECT i AS k, {'a': i, 'b': 0} AS s FROM range(20) r(i)")
    session.branch("more")
    session.sql("UPDATE p SET s = {'a': 50, 'b': 0} WHERE k = 1")
    on_branch(session, "ALTER TABLE p DROP COLUMN s.b", name="more")
    session.merge("more")
    assert rows(session, "SELECT s FROM p WHERE k < 3 ORDER BY k") == [({"a": 0},), ({"a": 50},), ({"a": 2},)]


def test_a_comment_of_an_expired_snapshot_is_merged(session: dl.Session) -> None:
    # without inlined rows, nothing else shows that the table may have changed
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE w (i INTEGER)")
    began = session.branch("more").snapshot_id
    on_branch(
        session,
        "COMMENT ON TABLE w IS 'about'",
        "CREATE TABLE u (i INTEGER)",
        "CREATE TABLE v (i INTEGER)",
        f"CALL lake.expire_snapshots(versions => [{began + 1}, {began + 2}])",
        name="more",
    )
    session.merge("more")
    assert session.state().table("main", "w").comment == "about"


@pytest.mark.parametrize("text", ['{"snapshot": Infinity', '{"snapshot": 1e999', "[" * 100_000, '{"snapshot": null'])
def test_a_text_that_describes_no_branch_is_none(text: str) -> None:
    rest = ', "parent": null, "created": "2026-01-01T00:00:00+00:00"}'
    assert read_branch("fix", text + rest) is None
