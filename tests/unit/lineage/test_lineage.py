"""Lineage of a lake: views, statements that commits note, names that change, and what cannot be known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main
from ducklake_lab.widgets import browsers


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", alias="lake", engine="duckdb") as made:
        made._transactions.notes.context = dict  # commits note their statements, as in a notebook
        made.sql("CREATE TABLE orders (id INTEGER, customer INTEGER, amount DECIMAL(10, 2))")
        made.sql("CREATE TABLE customers (id INTEGER, name VARCHAR)")
        made.sql("INSERT INTO orders VALUES (1, 1, 5); INSERT INTO customers VALUES (1, 'a')")
        yield made


def _edges(session: dl.Session, name: str | None, kind: str = "value") -> set[tuple[object, ...]]:
    rows = session.lineage(name).fetchall()
    return {(row[0], row[1], f"{row[2]}.{row[3]}", f"{row[4]}.{row[5]}") for row in rows if row[6] == kind}


def test_a_column_is_followed_both_ways(session: dl.Session):
    session.sql("CREATE VIEW big AS SELECT customer, amount * 2 AS double FROM orders WHERE id > 0")
    session.sql(
        "CREATE TABLE daily AS SELECT name, sum(double) AS total FROM big JOIN customers ON customer = id GROUP BY ALL"
    )
    session.sql("CREATE TABLE report AS SELECT total + 1 AS more FROM lake.daily")
    assert _edges(session, "orders.amount") == {
        ("downstream", 1, "main.orders.amount", "main.big.double"),
        ("downstream", 2, "main.big.double", "main.daily.total"),
        ("downstream", 3, "main.daily.total", "main.report.more"),
    }
    assert _edges(session, "report.more") == {
        ("upstream", 1, "main.daily.total", "main.report.more"),
        ("upstream", 2, "main.big.double", "main.daily.total"),
        ("upstream", 3, "main.orders.amount", "main.big.double"),
    }
    assert ("downstream", 1, "main.orders.id", "main.big.None") in _edges(session, "orders.id", "condition")
    assert _edges(session, "customers.id") == set()
    session.sql("ALTER TABLE daily RENAME total TO sums; ALTER TABLE report RENAME TO summary")
    assert ("downstream", 3, "main.daily.sums", "main.summary.more") in _edges(session, "orders.amount")


def test_statements_are_traced_where_they_are_certain(session: dl.Session):
    session.sql("CREATE TABLE t (i INTEGER, v DECIMAL(10, 2)); INSERT INTO t SELECT id, amount FROM orders")
    session.sql("UPDATE t SET v = v + c.id FROM customers AS c WHERE c.id = t.i")
    session.sql("MERGE INTO t USING orders ON t.i = orders.id WHEN MATCHED THEN UPDATE SET i = orders.customer")
    found = {edge[2:] for edge in _edges(session, None)}
    assert found == {
        ("main.orders.id", "main.t.i"),
        ("main.orders.amount", "main.t.v"),
        ("main.t.v", "main.t.v"),
        ("main.customers.id", "main.t.v"),
        ("main.orders.customer", "main.t.i"),
    }
    session.sql("CREATE SCHEMA other; CREATE TABLE other.orders (id INTEGER, amount INTEGER)")
    session.sql("USE lake.other; INSERT INTO orders SELECT 1, 2 FROM lake.main.customers; USE lake.main")
    assert {edge[2:] for edge in _edges(session, None)} == found  # its table is read, and no column
    session.sql("INSERT INTO t SELECT i, i FROM range(3) AS r(i)")
    assert {edge[2:] for edge in _edges(session, None)} == found
    assert any(
        row[2] == "main.customers" and row[4] == "other.orders" for row in session.lineage("customers").fetchall()
    )


def test_without_notes_and_with_dropped_tables(session: dl.Session):
    session.sql("CREATE TABLE kept AS SELECT amount AS v FROM orders; DROP TABLE orders")
    assert _edges(session, "kept.v") == {("upstream", 1, "main.orders (dropped).amount (dropped)", "main.kept.v")}
    session._transactions.notes.context = None
    session.sql("CREATE TABLE unnoted AS SELECT name FROM customers")
    assert _edges(session, "unnoted") == set()
    for name, error in {
        "nope": dl.EntryNotFoundError,
        "kept.w": dl.EntryNotFoundError,
        "a.b.c.d": dl.DuckLakeError,
    }.items():
        with pytest.raises(error):
            session.lineage(name)


def test_previews_name_what_depends_on_what_goes(session: dl.Session):
    session.sql("CREATE VIEW big AS SELECT amount * 2 AS double FROM orders")
    preview = session.preview("ALTER TABLE orders DROP COLUMN amount")
    assert preview.dependents == ("main.big.double depends on main.orders.amount, by CREATE VIEW",)
    preview.rollback()
    preview = session.preview("ALTER TABLE orders DROP COLUMN customer")
    assert preview.dependents == ()
    preview.rollback()
    session.sql(
        "CREATE VIEW n AS SELECT count(*) AS n FROM orders; CREATE VIEW more AS SELECT double + 1 AS m FROM big"
    )
    session.sql("CREATE TABLE copied AS SELECT amount FROM orders; DROP TABLE copied")
    both = (
        "main.big.double depends on main.orders.amount, by CREATE VIEW",
        "main.n depends on main.orders, by CREATE VIEW",
    )
    for statement, expected in {
        "DROP TABLE orders": both,
        "ALTER TABLE orders RENAME TO other": both,
        "ALTER TABLE orders ALTER amount TYPE DECIMAL(12, 2)": both[:1],
        "ALTER TABLE orders RENAME COLUMN amount TO price": both[:1],
        "ALTER TABLE orders ADD COLUMN note VARCHAR": (),
        "DROP VIEW big": ("main.more.m depends on main.big.double, by CREATE VIEW",),
        "CREATE OR REPLACE VIEW big AS SELECT id AS double FROM orders": (
            "main.more.m depends on main.big.double, by CREATE VIEW",
        ),
        "DROP VIEW more": (),
        "DROP VIEW more; DROP VIEW big": (),
    }.items():
        preview = session.preview(statement)
        assert preview.dependents == expected, statement
        preview.rollback()


def test_the_lake_as_it_was_and_schemas_in_schemas(session: dl.Session):
    session.sql("CREATE VIEW big AS SELECT amount * 2 AS double FROM orders")
    then = session.current_snapshot().snapshot_id
    session.sql("CREATE VIEW more AS SELECT double FROM big; DROP VIEW big")
    assert {edge[2:] for edge in _edges(session, None)} == set()
    found = session.lineage("orders", at=then).fetchall()
    assert [row[:6] for row in found] == [("downstream", 1, "main.orders", "amount", "main.big", "double")]


def test_live_tables_are_traced_as_they_are(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE o (i INTEGER, amount DOUBLE); CREATE VIEW v AS SELECT i AS k, amount FROM o")
        session.sql("CREATE LIVE TABLE daily AS SELECT k % 2 AS p, sum(amount) AS a FROM v WHERE k > 0 GROUP BY ALL")
        session.sql("ALTER TABLE daily RENAME TO renamed; CREATE LIVE TABLE most AS SELECT max(a) AS m FROM renamed")
        assert [row[2:8] for row in session.lineage("most").fetchall()] == [
            ("main.renamed", "a", "main.most", "m", "value", "CREATE LIVE TABLE"),
            ("main.v", "amount", "main.renamed", "a", "value", "CREATE LIVE TABLE"),
            ("main.o", "amount", "main.v", "amount", "value", "CREATE VIEW"),
        ]
        session.sql("INSERT INTO o VALUES (1, 2); REFRESH ALL; DROP LIVE TABLE most")
        assert [row[2:6] for row in session.lineage("o.amount").fetchall()] == [
            ("main.o", "amount", "main.v", "amount"),
            ("main.v", "amount", "main.renamed", "a"),
        ]


def test_entries_whose_queries_cannot_be_read_are_named(lake_uri: Callable[..., str], tmp_path: Path):
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE o (i INTEGER, amount DOUBLE); CREATE VIEW good AS SELECT i FROM o")
        session.sql("CREATE VIEW v AS SELECT amount AS a FROM o; CREATE VIEW over_v AS SELECT a FROM v")
        session.sql("CREATE LIVE TABLE daily AS SELECT i, sum(amount) AS a FROM o GROUP BY i")
        assert session.lineage("o").info.remarks == []
        session.sql("ALTER TABLE o RENAME COLUMN amount TO price")
        remark = "not traced, as their queries cannot be read: main.daily, main.over_v, main.v"
        for name in ("o.price", "good", None):
            assert session.lineage(name).info.remarks == [remark], name
        assert remark in session.lineage("o.price")._repr_html_()
        browser = browsers.schema(session)
        browser.answer_lineage({"index": next(n for n, place in enumerate(browser._places) if place[1] == "o")})
        assert remark in browser.picture
        session.sql("DROP LIVE TABLE daily; DROP VIEW v; DROP VIEW over_v")
        assert session.lineage("o.price").info.remarks == []


def test_the_command_names_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lake = f"{tmp_path}/lake.ducklake"
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        session.sql("CREATE TABLE o (i INTEGER); CREATE VIEW v AS SELECT i FROM o; ALTER TABLE o RENAME COLUMN i TO k")
    assert main(["lineage", lake, "o.k"]) == 0
    assert capsys.readouterr().err == "ducklake-lab: not traced, as their queries cannot be read: main.v\n"
