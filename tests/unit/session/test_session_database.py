"""Tables, variables and settings of the session itself, alone and together with lakes; no Spark is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import BindError
from ducklake_lab.version import READS_VARIANT_BYTES
from ducklake_lab.widgets.result import summary

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.Session() as opened:
        opened.sql(f"ATTACH '{lake_uri()}' AS lake (DATA_PATH '{tmp_path}/data', METADATA_CATALOG 'meta')")
        opened.sql("CREATE TABLE lake.t (i INTEGER, u UUID); INSERT INTO lake.t VALUES (1, NULL), (2, NULL)")
        yield opened
        assert not opened.spark_started


def test_attach_leaves_the_choice_of_a_lake_to_use(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (10)")
    assert session.sql("FROM t").fetchall() == [(10,)]
    assert session.sql("SELECT count(*) FROM lake.t").fetchone() == (2,)
    session.sql("USE lake")
    assert session.sql("SELECT i FROM t").fetchall() == [(1,), (2,)]
    assert session.sql("FROM memory.t").fetchall() == [(10,)]
    session.sql("USE memory")
    assert session.sql("FROM t").fetchall() == [(10,)]


def test_a_temporary_table_hides_the_lakes(session: dl.Session) -> None:
    session.sql("USE lake; CREATE TEMP TABLE t AS SELECT i + 5 AS k FROM t")
    assert session.sql("FROM t").fetchall() == [(6,), (7,)]
    session.sql("DELETE FROM t WHERE k = 6; DROP TABLE t")
    assert session.sql("SELECT count(*) FROM t").fetchone() == (2,)
    session.sql("CREATE TEMP TABLE other AS SELECT 2 AS i")
    assert session.sql("SELECT t.i FROM t JOIN other USING (i)").fetchall() == [(2,)]
    session.sql("INSERT INTO t SELECT i + 1, uuid() FROM other")
    assert session.sql("SELECT i, typeof(u) FROM t ORDER BY i DESC LIMIT 1").fetchone() == (3, "UUID")


@pytest.mark.parametrize(
    "value",
    [
        "uuid()",
        "TIMETZ '12:00:00+01'",
        "{'a': 1}::VARIANT" if READS_VARIANT_BYTES else "1::INT128",
        "MAP {'k': [{'x x': uuid()}]}",
        "1::UHUGEINT",
    ],
)
def test_queries_leave_nothing_in_the_session(session: dl.Session, value: str) -> None:
    session.sql("CREATE TEMP TABLE q AS SELECT 42 AS mine")
    (row,) = session.sql(f"SELECT {value} AS a, mine AS a FROM q").fetchall()
    assert row[1] == 42
    assert session.sql("SHOW TABLES").fetchall() == [("q",)]
    assert session.sql("FROM q").fetchall() == [(42,)]
    session.sql("DROP TABLE q")
    session.sql(f"SELECT {value} AS a")
    assert session.sql("SHOW TABLES").fetchall() == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
@pytest.mark.parametrize(
    "sql",
    [
        "FROM '{}'",
        "USE lake; FROM '{}'",
        'SELECT count(*) FROM "{}"',
        "FROM lake.t JOIN '{}' USING (i)",
        "USE lake; SELECT t.i FROM t JOIN '{}' AS n USING (i)",
        "CREATE TABLE lake.u AS FROM read_csv('{}')",
    ],
)
@pytest.mark.parametrize("name", ["nope.csv", "no/such/*.parquet"])
def test_a_file_that_does_not_exist(session: dl.Session, engine: str, sql: str, name: str) -> None:
    with pytest.raises(dl.SqlError) as raised:
        session.sql(sql.format(name), engine=engine)
    which = " Statement 2 of 2." if sql.startswith("USE") else ""
    assert str(raised.value) == f'There is no file "{name}"; relative paths start at {Path.cwd()}.{which}'


def test_a_file_that_cannot_be_read_is_no_missing_table(session: dl.Session, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("x")
    for place in ("memory", "lake"):
        session.sql(f"USE {place}")
        with pytest.raises(dl.SqlError, match="too small to be a Parquet file"):
            session.sql(f"FROM '{tmp_path}/bad.parquet'")
        with pytest.raises(dl.BindError, match='There is no table "nope"'):
            session.sql("FROM nope")


def test_rows_of_the_session_take_part_in_transactions(session: dl.Session) -> None:
    session.sql("BEGIN; CREATE TABLE memory.z (i INTEGER); INSERT INTO lake.t VALUES (3, NULL); ROLLBACK")
    with pytest.raises(dl.BindError, match=r"memory\.z"):
        session.sql("FROM memory.z")
    assert session.sql("SELECT count(*) FROM lake.t").fetchone() == (2,)
    session.sql("BEGIN; CREATE TABLE memory.z (i INTEGER); INSERT INTO memory.z VALUES (1); COMMIT")
    assert session.sql("FROM memory.z").fetchall() == [(1,)]


def test_a_query_that_fails_aborts_the_transaction(session: dl.Session) -> None:
    session.sql("BEGIN; INSERT INTO lake.t VALUES (3, NULL); CREATE TABLE memory.z (i INTEGER)")
    with pytest.raises(dl.SqlError, match="out of order"):
        session.sql("SELECT error('out of order') FROM lake.t")
    for statement in ("FROM lake.t", "INSERT INTO lake.t VALUES (4, NULL)", "FROM memory.z"):
        with pytest.raises(dl.TransactionError, match="has failed; ROLLBACK before"):
            session.sql(statement)
    with pytest.raises(dl.TransactionError, match="had failed; it was rolled back"):
        session.sql("COMMIT")
    assert session.sql("SELECT count(*) FROM lake.t").fetchone() == (2,)
    session.sql("BEGIN; INSERT INTO lake.t VALUES (3, NULL); CREATE TABLE memory.z (i INTEGER)")
    with pytest.raises(dl.BindError):
        session.sql("SELECT nothing FROM lake.t")
    session.sql("COMMIT")
    assert session.sql("SELECT count(*) FROM lake.t, (SELECT count(*) FROM memory.z)").fetchone() == (3,)


@pytest.mark.parametrize("begin", ["SELECT 1", "BEGIN"])
def test_a_file_that_is_not_copied_is_named_in_a_transaction_too(
    session: dl.Session, tmp_path: Path, begin: str
) -> None:
    (tmp_path / "bad.csv").write_text("i,u\none,\n")
    for name in ("none.csv", "bad.csv"):
        session.sql(begin)
        with pytest.raises(dl.DuckLakeError, match=name):
            session.sql(f"COPY lake.t FROM '{tmp_path}/{name}' (HEADER)")
        if session.in_transaction:
            session.sql("ROLLBACK")
        assert session.sql("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]


def test_checkpoint_keeps_the_rows_of_the_open_transaction(session: dl.Session) -> None:
    session.sql("BEGIN; CREATE TEMP TABLE mine AS SELECT 1 AS i; INSERT INTO lake.t VALUES (3, NULL); CHECKPOINT lake")
    assert session.sql("FROM mine").fetchall() == [(1,)]
    session.sql("ROLLBACK")
    with pytest.raises(dl.BindError, match="mine"):
        session.sql("FROM mine")
    assert session.sql("SELECT count(*) FROM lake.t").fetchone() == (2,)


def test_variables_hold_what_functions_of_a_lake_return(session: dl.Session) -> None:
    session.sql("SET VARIABLE s = (SELECT max(snapshot_id) FROM ducklake_snapshots('lake'))")
    session.sql("INSERT INTO lake.t VALUES (3, NULL)")
    assert session.sql("SELECT count(*) FROM lake.t AT (VERSION => getvariable('s'))").fetchone() == (2,)
    assert session.sql("SELECT getvariable('s') + 1").fetchone() == (
        session.sql("FROM lake.current_snapshot()").fetchone() or ()
    )


def test_what_the_planner_has_no_words_for_is_duckdbs(session: dl.Session) -> None:
    assert session.sql("PIVOT lake.t ON i USING count(*)").fetchall() == [(None, 1, 1)]
    assert session.sql("SUMMARIZE lake.t").fetchall()[0][:4] == ("i", "INTEGER", "1", "2")
    assert session.sql("SELECT x FROM lake.t, LATERAL (SELECT i * 2 AS x) ORDER BY 1").fetchall() == [(2,), (4,)]
    assert session.sql("SELECT list_sort(list(i), 'DESC') FROM lake.t").fetchone() == ([2, 1],)


def test_local_files(session: dl.Session, tmp_path: Path) -> None:
    copied = session.sql(f"COPY (FROM lake.t) TO '{tmp_path}/t.parquet'")
    assert copied.fetchall() == [(2,)] and summary(copied).startswith("2 rows written")
    files = session.sql(f"COPY (FROM lake.t) TO '{tmp_path}/t.parquet' (RETURN_FILES)").fetchall()
    assert files == [(2, [f"{tmp_path}/t.parquet"])]
    assert session.sql(f"SELECT count(*) FROM '{tmp_path}/t.parquet'").fetchone() == (2,)
    assert session.sql(f"FROM glob('{tmp_path}/*.parquet')").fetchall() == [(f"{tmp_path}/t.parquet",)]
    session.sql(f"INSERT INTO lake.t FROM read_parquet('{tmp_path}/t.parquet')")
    assert session.sql("SELECT count(*) FROM lake.t").fetchone() == (4,)


def test_prepared_statements(session: dl.Session) -> None:
    session.sql("PREPARE find AS SELECT i, $1 AS k FROM lake.t WHERE i = $2")
    assert session.sql("EXECUTE find('x', 1 + 1)").fetchall() == [(2, "x")]
    session.sql("PREPARE named AS SELECT $a - $b AS d; ")
    assert session.sql("EXECUTE named(a := 5, b := 3)").fetchall() == [(2,)]
    session.sql("PREPARE put AS INSERT INTO lake.t VALUES (?, NULL); EXECUTE put(7); DEALLOCATE put")
    assert session.sql("SELECT max(i) FROM lake.t").fetchone() == (7,)
    with pytest.raises(dl.EntryNotFoundError, match='no prepared statement "put"'):
        session.sql("EXECUTE put(8)")


def test_the_catalog_as_tables(session: dl.Session) -> None:
    assert session.sql("SELECT table_name FROM meta.ducklake_table").fetchall() == [("t",)]
    joined = (
        "SELECT s.snapshot_id, c.changes_made FROM meta.main.ducklake_snapshot s JOIN meta.ducklake_snapshot_changes c"
    )
    assert session.sql(f"{joined} USING (snapshot_id) ORDER BY 1").fetchall()[1][1] == 'created_table:"main"."t"'
    name = session.sql("SELECT table_name FROM meta.ducklake_inlined_data_tables").fetchone()
    assert name is not None
    assert session.sql(f"SELECT count(*) FROM meta.{name[0]}").fetchone() == (2,)
    with pytest.raises(dl.BindError, match='no table "ducklake_tabel"'):
        session.sql("FROM meta.ducklake_tabel")


def test_the_catalog_is_changed_directly(session: dl.Session) -> None:
    assert session.sql("UPDATE meta.ducklake_snapshot_changes SET author = 'me' WHERE snapshot_id = 1").fetchone() == (
        1,
    )
    assert session.sql("SELECT author FROM ducklake_snapshots('lake') WHERE snapshot_id = 1").fetchone() == ("me",)
    session.sql("BEGIN")
    with pytest.raises(dl.TransactionError, match="outside of a transaction"):
        session.sql("DELETE FROM meta.ducklake_snapshot")


def test_each_state_that_is_read_is_named(session: dl.Session) -> None:
    query = "SELECT count(*) FROM lake.t AT (VERSION => 1) AS was, lake.t AS now"
    (row,) = session.sql(f"EXPLAIN {query}").fetchall()
    assert "t: snapshot 1, reads" in row[1] and "t: snapshot 2, reads" in row[1]
    assert session.sql(query).info.snapshots == [("lake", 1), ("lake", 2)]
    assert session.sql(f"{query}, lake.t AS again").info.snapshots == [("lake", 1), ("lake", 2)]


def test_explain_tells_what_would_be_read(session: dl.Session) -> None:
    row = session.sql("EXPLAIN SELECT * FROM lake.t WHERE i = 1").fetchone()
    assert row is not None
    assert "reads 0 of 0 files" in row[1] and "2 inlined rows" in row[1] and "runs in process" in row[1]
    row = session.sql("EXPLAIN ANALYZE SELECT * FROM lake.t WHERE i = 1").fetchone()
    assert row is not None
    assert row[0] == "analyzed_plan" and "Total Files Read: 0 of 0 (0 bytes)" in row[1] and row[1].endswith("= 1")
    with pytest.raises(dl.UnsupportedFeatureError, match="no query"):
        session.sql("EXPLAIN ANALYZE DELETE FROM lake.t")
    assert session.sql("SELECT count(*) FROM lake.t").fetchone() == (2,)


def test_changes_of_its_own_tables_are_counted(session: dl.Session) -> None:
    assert session.sql("PRAGMA enable_verification; CREATE TABLE mine AS FROM lake.t").fetchall() == [(2,)]
    assert session.sql("INSERT INTO mine SELECT i + 10, u FROM lake.t").fetchall() == [(2,)]
    assert session.sql("DELETE FROM mine WHERE i > 11 RETURNING i").fetchall() == [(12,)]
    assert session.sql("UPDATE mine SET i = 0").fetchall() == [(3,)]


@pytest.mark.slow
def test_databases_are_copied_with_views_and_macros(session: dl.Session, tmp_path: Path) -> None:
    session.sql(f"ATTACH '{tmp_path}/p.db' AS plain; ATTACH 'ducklake:{tmp_path}/o.ducklake' AS other")
    session.sql('CREATE VIEW lake.v(a) AS SELECT i FROM lake.t WHERE i > 1; CREATE TABLE lake."or" ("by" DATE[])')
    session.sql("CREATE MACRO lake.m(x, y := 2) AS x + y; CREATE MACRO lake.pairs() AS TABLE SELECT 1 AS p, 2 AS q")
    assert session.sql("COPY FROM DATABASE lake TO plain").fetchall() == []
    assert session.sql("COPY FROM DATABASE lake TO other (SCHEMA)").fetchall() == []
    assert sorted(session.sql("COPY FROM DATABASE lake TO other (DATA)").fetchall()) == [(0,), (2,)]
    assert session.sql("SELECT max(id) FROM other.current_snapshot()").fetchone() == (2,)
    for name in ("plain", "other"):
        assert session.sql(f"SELECT a, {name}.m(a), q FROM {name}.v, {name}.pairs()").fetchall() == [(2, 4, 2)]
    with pytest.raises(dl.UnsupportedFeatureError, match="macro m cannot be copied"):
        session.sql("COPY FROM DATABASE plain TO other")
    session.sql("DROP MACRO plain.m; DROP VIEW plain.v; DROP TABLE plain.t; CREATE VIEW plain.w(z) AS SELECT 7")
    session.sql(f"ATTACH 'ducklake:{tmp_path}/third.ducklake' AS third; COPY FROM DATABASE plain TO third")
    assert session.sql("SELECT z, p FROM third.w, third.pairs()").fetchall() == [(7, 1)]
    session.sql("CREATE TABLE plain.keyed (k INTEGER PRIMARY KEY)")
    with pytest.raises(dl.BindError, match="keyed has a PRIMARY KEY"):
        session.sql("COPY FROM DATABASE plain TO third")
    with pytest.raises(dl.EntryNotFoundError, match='"nope"'):
        session.sql("COPY FROM DATABASE nope TO third")


def test_nonsense_is_refused_before_anything_runs(session: dl.Session) -> None:
    with pytest.raises(dl.SqlSyntaxError, match="line 1"):
        session.sql("INSERT INTO lake.t VALUES (9, NULL); SELEKT 1")
    with pytest.raises(dl.UnsupportedFeatureError, match="INDEX"):
        session.sql("CREATE INDEX x ON lake.t (i)")
    assert session.sql("SELECT count(*) FROM lake.t").fetchone() == (2,)


def test_other_databases_are_attached_beside_lakes(session: dl.Session, tmp_path: Path) -> None:
    session.sql(f"ATTACH '{tmp_path}/plain.db' AS plain; CREATE TABLE plain.p AS SELECT i * 10 AS i FROM lake.t")
    assert session.sql("SELECT p.i FROM plain.p JOIN lake.t ON p.i = t.i * 10 ORDER BY 1").fetchall() == [(10,), (20,)]
    session.sql("INSERT INTO lake.t SELECT i, NULL FROM plain.p; DETACH plain")
    assert session.sql("SELECT max(i) FROM lake.t").fetchone() == (20,)
    with pytest.raises(dl.DuckLakeError, match="plain"):
        session.sql("FROM plain.p")
    session.sql("DETACH meta")
    with pytest.raises(dl.DuckLakeError, match="lake"):
        session.sql("INSERT INTO lake.t VALUES (1, NULL)")


def test_copying_rows_between_databases_of_its_own_counts_them(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/m.ducklake", alias="lake") as session:
        session.sql("ATTACH ':memory:' AS a; ATTACH ':memory:' AS b; CREATE TABLE a.t AS FROM range(7) r(i)")
        assert session.sql("COPY FROM DATABASE a TO b (SCHEMA)").fetchall() == []
        assert session.sql("COPY FROM DATABASE a TO b (DATA)").fetchall() == [(7,)]
        assert session.sql("SELECT count(*) FROM b.t").fetchall() == [(7,)]


def test_names_that_begin_with_temp_are_names(session: dl.Session) -> None:
    session.sql("CREATE TEMP TABLE sixes AS SELECT 6 AS six; INSERT INTO temp.sixes VALUES (7)")
    assert session.sql("FROM temp.sixes ORDER BY six").fetchall() == [(6,), (7,)]
    session.sql("DROP TABLE IF EXISTS temp.sixes")
    with pytest.raises(BindError, match='no table "sixes"'):
        session.sql("FROM sixes")


def test_a_line_of_a_csv_file_that_cannot_be_read_is_named_in_one_line(session: dl.Session, tmp_path: Path) -> None:
    file = tmp_path / "values.csv"
    file.write_text("id,price ($)\n1,2.50\n2,NA\n")
    with pytest.raises(dl.DuckLakeError) as refused:
        session.sql(f"FROM read_csv('{file}', types = {{'price ($)': 'DECIMAL(9,2)'}})").fetchall()
    assert str(refused.value) == f'Line 3 of {file}: "NA" in the column "price ($)" is no DECIMAL.'
    file.write_text("a,b\n1,2\n3\n")
    with pytest.raises(dl.DuckLakeError) as refused:
        session.sql(
            f"FROM read_csv('{file}', auto_detect = false, header = true, columns = {{a: 'INT', b: 'INT'}})"
        ).fetchall()
    assert str(refused.value) == f"Line 3 of {file} has 1 column, not 2."


#: DuckDB 1.5 fails on a set operation below an ASOF join.
_FAULT = (
    "SELECT * FROM (FROM one EXCEPT ALL FROM two) a ASOF JOIN one b ON a.d >= b.d JOIN lake.main.kept r ON r.d = b.d"
)


def fails_in_duckdb() -> bool:
    """Whether DuckDB has the fault still."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE one AS SELECT 1 AS d; CREATE TABLE two AS FROM one LIMIT 0")
        try:
            connection.execute(_FAULT.partition(" JOIN lake")[0])
        except duckdb.InternalException:
            return True
    return False


def test_a_fault_of_duckdb_ends_no_session(tmp_path: Path) -> None:
    if not fails_in_duckdb():
        pytest.skip("DuckDB has no such fault any more")
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake") as session:
        session.sql("SET TimeZone = 'Asia/Kathmandu'; CREATE TABLE kept AS SELECT 1 AS d")
        session.sql("CREATE TEMP TABLE one AS SELECT 1 AS d; CREATE TEMP TABLE two AS FROM one LIMIT 0; BEGIN")
        session.sql("INSERT INTO kept VALUES (2)")
        with pytest.raises(
            dl.SqlError, match=r"^DuckDB \S+ has a fault that this statement meets: [^\n]+\. Write it in"
        ):
            session.sql(_FAULT)
        with pytest.raises(dl.BindError, match='no table "one"'):
            session.sql("FROM one")
        session.sql("CREATE TEMP TABLE one AS SELECT 3 AS d")
        session.sql("INSERT INTO kept FROM one; COMMIT")
        assert session.sql("FROM kept ORDER BY d").fetchall() == [(1,), (2,), (3,)]
        assert session.sql("SELECT current_setting('TimeZone') FROM one").fetchall() == [("Asia/Kathmandu",)]


@pytest.mark.parametrize(
    "failing",
    [
        "CREATE TEMP TABLE p AS PIVOT nope ON v USING count(*)",
        "CREATE TEMP TABLE p AS FROM (PIVOT (SELECT 'x'::INTEGER AS v) ON v USING count(*))",
        "EXPLAIN CREATE TEMP TABLE p AS PIVOT nope ON v USING count(*)",
    ],
)
def test_a_statement_that_duckdb_splits_up_leaves_no_transaction(session: dl.Session, failing: str) -> None:
    with pytest.raises(dl.DuckLakeError):
        session.sql(failing)
    assert session.sql("SELECT 1").fetchall() == [(1,)]
    assert session.sql("SELECT count(*) FROM lake.t").fetchall() == [(2,)]
    session.sql("BEGIN; CREATE TEMP TABLE p AS SELECT 1 AS i; COMMIT")
    assert session.sql("FROM p").fetchall() == [(1,)]


def test_pivot_and_unpivot_are_explained(session: dl.Session) -> None:
    for text in ("PIVOT lake.t ON i USING count(*)", "UNPIVOT lake.t ON i", "FROM (PIVOT lake.t ON i USING count(*))"):
        (row,) = session.sql(f"EXPLAIN {text}").fetchall()
        assert "lake.t: snapshot" in row[1] and "runs in process" in row[1]
        (row,) = session.sql(f"EXPLAIN ANALYZE {text}").fetchall()
        assert row[1].startswith("Total Time")
    assert session.sql("SELECT 1").fetchall() == [(1,)]
