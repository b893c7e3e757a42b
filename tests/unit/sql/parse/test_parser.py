"""Operations that statements are parsed to, and errors of those that are refused."""

from __future__ import annotations

import pytest

from ducklake_lab.errors import SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.parse.parser import pivot_as_query


def one(text: str) -> op.Operation:
    (statement,) = parse(text)
    return statement.operation


def test_statements_are_split_outside_of_quotes_and_comments() -> None:
    text = "SELECT ';' AS \"a;b\" -- no; end\n;\n/* a; b */ SELECT $$x;y$$;;\n\n  BEGIN;"
    statements = parse(text)
    assert [type(statement.operation) for statement in statements] == [op.Query, op.Query, op.Begin]
    assert [statement.line for statement in statements] == [1, 3, 5]
    assert statements[1].text == "SELECT $$x;y$$"


def test_nothing_to_run_is_no_statement() -> None:
    assert parse(" ; -- only a comment\n;") == []


def test_attach_with_every_kind_of_option() -> None:
    assert one(
        "ATTACH OR REPLACE 'ducklake:m.db' AS lake (DATA_PATH 'd/', SNAPSHOT_VERSION 3, READ_ONLY, "
        "ENCRYPTED false, OVERRIDE_DATA_PATH true, METADATA_SCHEMA meta)"
    ) == op.Attach(
        "ducklake:m.db",
        "lake",
        {
            "data_path": "d/",
            "snapshot_version": 3,
            "read_only": True,
            "encrypted": False,
            "override_data_path": True,
            "metadata_schema": "meta",
        },
        replace=True,
    )
    assert one("attach if not exists 'ducklake:x'") == op.Attach("ducklake:x", if_not_exists=True)


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("BEGIN", op.Begin()),
        ("begin transaction", op.Begin()),
        ("START TRANSACTION", op.Begin()),
        ("COMMIT", op.Commit()),
        ("END", op.Commit()),
        ("ROLLBACK", op.Rollback()),
        ("ABORT", op.Rollback()),
        ("DETACH lake", op.Detach("lake")),
        ("DETACH DATABASE IF EXISTS lake", op.Detach("lake", True)),
        ('USE "my lake".main', op.Use(("my lake", "main"))),
        ("SHOW TABLES", op.Listing()),
        ('DESCRIBE "tables"', op.Listing()),
        ("PRAGMA show_tables", op.Listing()),
        ("SHOW ALL TABLES", op.Listing("all")),
        ("DESC", op.Listing("all")),
        ("SHOW SCHEMAS", op.Listing("schemas")),
        ("SHOW TABLES FROM lake", op.Listing(source=("lake",))),
        ("DESCRIBE tables.t", op.Describe(table=op.TableName(None, "tables", "t"))),
        ("DESCRIBE a.t", op.Describe(table=op.TableName(None, "a", "t"))),
        ("CREATE SCHEMA IF NOT EXISTS lake.s", op.CreateSchema(op.TableName(None, "lake", "s"), True)),
        ('CREATE SCHEMA lake.a."b.c"', op.CreateSchema(op.TableName(None, "lake", '"a"."b.c"'))),
        ("DROP SCHEMA IF EXISTS a.b.c.d", op.DropSchema(op.TableName(None, "a", '"b"."c"."d"'), if_exists=True)),
        ("DROP SCHEMA s CASCADE", op.DropSchema(op.TableName(None, None, "s"), cascade=True)),
        ("DROP TABLE IF EXISTS a.b.c", op.DropTable(op.TableName("a", "b", "c"), True)),
        ("TRUNCATE t", op.Truncate(op.TableName(None, None, "t"))),
        ("ALTER TABLE t RENAME TO u", op.RenameTable(op.TableName(None, None, "t"), "u")),
        ("ALTER TABLE t RENAME a TO b", op.RenameColumn(op.TableName(None, None, "t"), "a", "b")),
        ("ALTER TABLE t RENAME COLUMN a TO b", op.RenameColumn(op.TableName(None, None, "t"), "a", "b")),
        ("ALTER TABLE t DROP IF EXISTS a", op.DropColumn(op.TableName(None, None, "t"), "a", if_column_exists=True)),
        (
            "ALTER TABLE IF EXISTS t ADD COLUMN IF NOT EXISTS c INT DEFAULT 3",
            op.AddColumn(op.TableName(None, None, "t"), op.ColumnDef("c", DataType("int32"), default="3"), True, True),
        ),
        (
            "ALTER TABLE t SET PARTITIONED BY (a, month(ts), bucket(8, x))",
            op.SetPartitionedBy(
                op.TableName(None, None, "t"),
                (op.PartitionKey("a"), op.PartitionKey("ts", "month"), op.PartitionKey("x", "bucket(8)")),
            ),
        ),
        ("ALTER TABLE t RESET PARTITIONED BY", op.ResetPartitionedBy(op.TableName(None, None, "t"))),
        (
            "CALL lake.set_option('a', 3, table_name => 't', until := now())",
            op.Call(
                op.TableName(None, "lake", "set_option"),
                ("a", 3),
                {"table_name": "t", "until": op.SqlConstant("NOW()")},
            ),
        ),
    ],
)
def test_one_statement(text: str, operation: op.Operation) -> None:
    assert one(text) == operation


def test_create_table() -> None:
    created = one(
        "CREATE TABLE IF NOT EXISTS s.t (a INT NOT NULL DEFAULT -1, b VARCHAR DEFAULT 'it''s', "
        "c DATE DEFAULT current_date, d STRUCT(x INT, y VARCHAR[]))"
    )
    assert isinstance(created, op.CreateTable)
    assert created.if_not_exists
    assert created.name == op.TableName(None, "s", "t")
    assert [(c.name, c.nulls_allowed, c.default, c.default_type) for c in created.columns] == [
        ("a", False, "-1", "literal"),
        ("b", True, "it's", "literal"),
        ("c", True, "CURRENT_DATE", "expression"),
        ("d", True, None, "literal"),
    ]


def test_create_table_from_a_query() -> None:
    created = one("CREATE OR REPLACE TABLE t PARTITIONED BY (a, year(d)) AS FROM x WITH NO DATA")
    assert isinstance(created, op.CreateTable)
    assert (created.replace, created.with_data) == (True, False)
    assert created.partitioned_by == (op.PartitionKey("a"), op.PartitionKey("d", "year"))
    assert created.query is not None
    assert created.query.distinct_names


def test_insert_forms() -> None:
    listed = one("INSERT INTO t (a, b) VALUES (1, DEFAULT)")
    assert isinstance(listed, op.Insert)
    assert (listed.columns, listed.by_name) == (("a", "b"), False)
    assert listed.column_positions == ((1, 16), (1, 19))
    named = one("INSERT INTO t BY NAME SELECT 1 AS a")
    assert isinstance(named, op.Insert)
    assert named.by_name
    empty = one("INSERT INTO t DEFAULT VALUES")
    assert isinstance(empty, op.Insert)
    assert empty.query is None


def test_explain_and_describe_hold_what_they_are_about() -> None:
    explained = one("EXPLAIN ANALYZE SELECT 1")
    assert isinstance(explained, op.Explain)
    assert explained.analyze
    assert isinstance(explained.operation, op.Query)
    described = one("DESCRIBE FROM t")
    assert isinstance(described, op.Describe)
    assert described.query is not None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("CREATE OR REPLACE TEMP TABLE t (a INT)", "CREATE TEMPORARY TABLE"),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "PRIMARY KEY"),
        ("COMMENT ON MACRO m IS 'x'", "COMMENT ON MACRO"),
        ("DROP VIEW v CASCADE", "CASCADE"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "ON CONFLICT"),
        ("INSERT OR REPLACE INTO t VALUES (1)", "INSERT OR REPLACE"),
        ("INSERT INTO t VALUES (1) RETURNING a", "RETURNING"),
        ("UPDATE t SET a = 1 RETURNING a", "RETURNING"),
        ("DELETE FROM t RETURNING a", "RETURNING"),
        ("PIVOT t ON a USING sum(b)", "PIVOT"),
        ("SUMMARIZE t", "SUMMARIZE"),
        ("SET x = 1", "SET"),
        ("CREATE TABLE t (a INT[3])", "Fixed-size"),
        ("CREATE TABLE t (a ENUM('x'))", "ENUM"),
        ("CREATE TABLE t (a UNION(x INT))", "UNION"),
        ("CREATE TABLE t (a FOO)", "FOO"),
        ("ALTER TABLE t SET PARTITIONED BY (truncate(a))", "truncate"),
    ],
)
def test_what_is_not_supported_is_named(text: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        parse(text)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("CREATE TABLE t (a INT PRIMARY KEY)", 'PRIMARY KEY on column "a"'),
        ("CREATE TABLE t (a INT, UNIQUE (a))", "UNIQUE"),
        ("CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1))", 'GENERATED ALWAYS AS on column "b"'),
        ("CREATE TABLE t (a INT, b AS (a + 1))", 'GENERATED ALWAYS AS on column "b"'),
        ("ALTER TABLE t ADD COLUMN b INT AS (a + 1)", 'GENERATED ALWAYS AS on column "b"'),
        ("CREATE TABLE t (a VARCHAR COLLATE NOCASE DEFAULT 'x')", 'COLLATE on column "a"'),
        ("CREATE TABLE t (a VARCHAR[] COLLATE NOCASE.NOACCENT)", 'COLLATE on column "a"'),
        ("ALTER TABLE t ADD COLUMN a VARCHAR COLLATE de", 'COLLATE on column "a"'),
        ("ALTER TABLE t ALTER a TYPE VARCHAR COLLATE NOCASE", 'COLLATE on column "a"'),
        ("ALTER TABLE t ALTER COLUMN a SET DATA TYPE VARCHAR COLLATE NOCASE", 'COLLATE on column "a"'),
    ],
)
def test_what_no_lake_has_is_named(text: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=named):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("SELEC 1", 'Syntax error at "SELEC" (line 1, column 1); expected a statement.', 1, 1),
        ("SELECT *\nFROM t WHERE WHERE a", 'Syntax error at "WHERE" (line 2, column 14).', 2, 14),
        (
            "SELECT 1;\n\nBEGIN foo",
            'Syntax error at "foo" (line 3, column 7); expected the end of the statement.',
            3,
            7,
        ),
        ("SELECT 'abc", "The text that begins here does not end; close it with ' (line 1, column 8).", 1, 8),
        (
            "SELECT 'a''', \"b\" -- it's\nFROM t /* it's */ WHERE s = 'x; SELECT 1",
            "The text that begins here does not end; close it with ' (line 2, column 29).",
            2,
            29,
        ),
        ('SELECT "abc FROM t', 'The name that begins here does not end; close it with " (line 1, column 8).', 1, 8),
        ("SELECT 1 /* all", "The comment that begins here does not end; close it with */ (line 1, column 10).", 1, 10),
        ("USE", "Syntax error at the end (line 1, column 4); expected the name of a lake or schema.", 1, 4),
    ],
)
def test_a_syntax_error_is_one_line_with_its_place(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    assert (str(caught.value), caught.value.line, caught.value.column) == (message, line, column)


def test_the_column_of_range_is_compared() -> None:
    operation = parse("SELECT range FROM range(9) WHERE range < 3")[0].operation
    assert isinstance(operation, op.Query)
    assert operation.tree.args["where"].this.sql(dialect="duckdb") == "range < 3"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (
            "PIVOT t ON a USING sum(b) ORDER BY a LIMIT 2",
            "SELECT * FROM (PIVOT t ON a USING sum(b)) ORDER BY a LIMIT 2",
        ),
        ("UNPIVOT (FROM t ORDER BY a) ON a, b", "SELECT * FROM (UNPIVOT (SELECT * FROM t ORDER BY a) ON a, b)"),
        (
            "WITH c AS (FROM t ORDER BY a), d AS (FROM c) PIVOT d ON a USING sum(b) ORDER BY a",
            "WITH c AS (SELECT * FROM t ORDER BY a), d AS (SELECT * FROM c) SELECT * FROM (PIVOT d ON a USING sum(b)) ORDER BY a",
        ),
        ("WITH pivot AS (SELECT 1 AS a) FROM pivot", None),
        ("WITH c AS (FROM t) FROM c PIVOT (sum(b) FOR a IN (1))", None),
        ("SELECT 1", None),
        ("PIVOT t ON o +", None),
    ],
)
def test_a_pivot_is_a_query(text: str, query: str | None) -> None:
    found = pivot_as_query(text)
    shown = found.tree.sql(dialect=DuckLakeSql, normalize_functions=False) if found is not None else None
    assert shown == query


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE TABLE '' AS SELECT 1 AS a", SqlSyntaxError, "The name of a table is empty; give it one."),
        ("CREATE TABLE lake.'' (a INTEGER)", SqlSyntaxError, "The name of a table is empty; give it one."),
        ("CREATE TABLE t (s STRUCT('' INTEGER))", SqlSyntaxError, "Syntax error at \"''\" (line 1, column 26)."),
        ("SELECT NULL::STRUCT(a INTEGER, 'b' INTEGER)", SqlSyntaxError, "Syntax error at \"'b'\" (line 1, column 32)."),
        (
            "CREATE TABLE t (s STRUCT(x VARCHAR COLLATE NOCASE))",
            SqlSyntaxError,
            'The field "x" of a STRUCT takes a type only: STRUCT(x TEXT COLLATE NOCASE).',
        ),
        ("DROP TABLE ''", SqlSyntaxError, "The name of a table is empty; give it one."),
        ("CREATE TABLE t ('' INTEGER)", SqlSyntaxError, "The name of a column is empty; give it one."),
        ("ALTER TABLE t ADD COLUMN '' INTEGER", SqlSyntaxError, "The name of a column is empty; give it one."),
        (
            "CREATE TABLE t (a DECIMAL(4, 1) USING COMPRESSION RLE)",
            UnsupportedFeatureError,
            "USING COMPRESSION is not supported: lakes have one compression for all columns, the option parquet_compression.",
        ),
        (
            "CREATE TABLE t (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1) VIRTUAL, c INTEGER)",
            UnsupportedFeatureError,
            "Generated columns are not supported: lakes have NOT NULL and DEFAULT only.",
        ),
        (
            "CREATE TABLE t (a INTEGER, b AS (a + 1) STORED)",
            UnsupportedFeatureError,
            "Generated columns are not supported: lakes have NOT NULL and DEFAULT only.",
        ),
    ],
)
def test_what_tables_do_not_take_is_refused_by_name(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        parse(text)
    assert str(raised.value) == message


def test_words_of_refused_clauses_are_names() -> None:
    created = one("CREATE TABLE t (virtual INTEGER, stored TEXT DEFAULT ('x'), compression VARCHAR)")
    assert isinstance(created, op.CreateTable)
    assert [column.name for column in created.columns] == ["virtual", "stored", "compression"]
