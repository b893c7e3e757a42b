"""Rows and column names of queries on Spark, compared with DuckDB's, query by query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import DataType, from_arrow
from ducklake_lab.spark import querying
from ducklake_lab.sql import QueryPlan, parse, plan_delete, plan_insert, plan_query, plan_update
from ducklake_lab.sql.operations import At, Delete, Insert, Query, TableName, Update
from ducklake_lab.sql.plan import InputRows, NamedRows
from ducklake_lab.version import SINCE_DUCKDB_2
from tests.spark.sql_queries import QUERIES
from tests.unit.sql.lakes import Lakes

_COUNT = 240
_START = datetime(2013, 1, 1, 5, 17, 3, 250_000)


def _tables() -> dict[str, pa.Table]:
    rows = range(_COUNT)
    carriers = ["UA", "AA", "B6", None, "DL"]
    flights = pa.table(
        {
            "id": pa.array(list(rows), pa.int64()),
            "month": pa.array([i % 12 + 1 for i in rows], pa.int32()),
            "day": pa.array([i % 28 + 1 for i in rows], pa.int32()),
            "carrier": pa.array([carriers[i % 5] for i in rows]),
            "tailnum": pa.array([None if i % 11 == 0 else f"N{i % 17:03d}" for i in rows]),
            "dep_delay": pa.array([None if i % 7 == 0 else (i % 50) - 10.5 for i in rows], pa.float64()),
            "distance": pa.array([None if i % 13 == 0 else i * 7 - 100 for i in rows], pa.int32()),
            "fare": pa.array(
                [None if i % 9 == 0 else Decimal(i * 137 - 500) / 100 for i in rows], pa.decimal128(10, 2)
            ),
            "cancelled": pa.array([None if i % 10 == 0 else i % 3 == 0 for i in rows]),
            "dep": pa.array([_START + timedelta(hours=13 * i, minutes=i) for i in rows], pa.timestamp("us")),
            "flown": pa.array([None if i % 8 == 0 else date(2013, 1, 1) + timedelta(days=i) for i in rows]),
            "stops": pa.array(
                [None if i % 6 == 0 else [i % 3, i % 5, None][: i % 4] for i in rows], pa.list_(pa.int32())
            ),
            "info": pa.array(
                [{"gate": f"G{i % 4}", "spot": {"x": i, "y": i / 2}} for i in rows],
                pa.struct([("gate", pa.string()), ("spot", pa.struct([("x", pa.int32()), ("y", pa.float64())]))]),
            ),
            "tags": pa.array([[("a", i), ("b", i * 2)] for i in rows], pa.map_(pa.string(), pa.int32())),
        }
    )
    planes = pa.table(
        {
            "tailnum": [f"N{i:03d}" for i in range(12)],
            "year": pa.array([None if i == 3 else 1990 + i for i in range(12)], pa.int32()),
            "seats": pa.array([i * 20 for i in range(12)], pa.int32()),
        }
    )
    airlines = pa.table({"carrier": ["UA", "AA", "DL", "XX"], "name": ["United", "American", "Delta", "50%_off\\x"]})
    return {"flights": flights, "planes": planes, "airlines": airlines}


TABLES = _tables()


class _Resolver(Lakes):
    """Knows the tables."""

    def table(self, name: TableName, at: At | None) -> NamedRows:
        return InputRows([(field.name, from_arrow(field.type)) for field in TABLES[name.name.lower()].schema])

    def function(
        self, name: TableName, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[tuple[str, DataType]] | None:
        return None


def _plan(text: str) -> QueryPlan:
    operation = parse(text)[0].operation
    assert isinstance(operation, Query)
    return plan_query(operation, _Resolver())


def _with_virtual(name: str, virtual: bool) -> pa.Table:
    table = TABLES[name]
    if not virtual:
        return table
    count = table.num_rows
    for column, values in (
        ("_ducklake_file_id", [1] * count),
        ("_ducklake_position", list(range(count))),
        ("_ducklake_row_id", list(range(1000, 1000 + count))),
        ("_ducklake_snapshot_id", [7] * count),
    ):
        table = table.append_column(column, pa.array(values, pa.int64()))
    return table


def _duckdb(plan: QueryPlan) -> tuple[list[str], list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        for source in plan.sources:
            connection.register(source.view, _with_virtual(source.name.name.lower(), source.virtual))
        result = connection.execute(plan.duckdb_sql)
        return [column[0] for column in result.description or ()], result.fetchall()


def _duckdb_plain(text: str) -> list[str]:
    """The names DuckDB gives the columns of the user's own text."""
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        return [column[0] for column in connection.execute(text).description or ()]


_schemas: dict[Path, Any] = {}


def _spark(plan: QueryPlan, spark: Any, folder: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    frames = {}
    for source in plan.sources:
        name = source.name.name.lower()
        # From a file, as real data comes: only so Spark sees timestamps without a zone as what they are.
        path = folder / f"{name}{'_virtual' if source.virtual else ''}.parquet"
        if not path.exists():
            pq.write_table(_with_virtual(name, source.virtual), path)
        # asked once for each file: a job reads it
        if path not in _schemas:
            _schemas[path] = spark.read.parquet(str(path)).schema
        frames[source.view] = spark.read.schema(_schemas[path]).parquet(str(path))
    query = plan.for_spark()
    frame = querying.run(spark, query.sql, query.evaluations, frames)
    return frame.columns, [tuple(row) for row in frame.collect()]


def _comparable(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return {key: _comparable(item) for key, item in value.asDict().items()}
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, int | float | Decimal):
        return round(float(value), 6)
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def _rows(rows: Sequence[Sequence[Any]], ordered: bool) -> list[Any]:
    comparable = [_comparable(row) for row in rows]
    return comparable if ordered else sorted(comparable, key=repr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("translation")


@pytest.fixture(autouse=True)
def _utc(spark: Any) -> Iterator[None]:
    # A zone with daylight saving: what has no time zone must not depend on it.
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("text", QUERIES)
def test_spark_gives_what_duckdb_gives(spark: Any, folder: Path, text: str) -> None:
    if SINCE_DUCKDB_2:
        for part, reason in _NOT_SINCE_2.items():
            if part in text:
                pytest.skip(reason)
    plan = _plan(text)
    names, rows = _spark(plan, spark, folder)
    expected_names, expected = _duckdb(plan)
    ordered = "ORDER BY" in text.rsplit(")", 1)[-1]
    assert names == expected_names
    assert _rows(rows, ordered) == _rows(expected, ordered)
    assert rows, "a query that matches no row compares nothing"
    if "rowid" not in text:
        names = zip(plan.columns or (), _duckdb_plain(text), strict=True)
        # 2.0 names types as they were written
        assert [pair for pair in names if pair[0] != pair[1] and not (SINCE_DUCKDB_2 and "CAST(" in pair[1])] == []


#: Parts of queries that mean something else in DuckDB 2.0.
_NOT_SINCE_2 = {
    "// (month - 1)": "an error: the divisor is zero",
    "5 % 0": "an error: the divisor is zero",
    "x -> x": "DuckDB takes no arrows",
    "(month, day) IN": "tuples have a type that Spark does not",
    "count(DISTINCT (month, day))": "tuples have a type that Spark does not",
}

REFUSED = [
    ("SELECT count(*) FILTER (WHERE random() < 0.5) FROM flights", r"random\(\) in FILTER"),
    ("SELECT 1 FROM flights a JOIN planes b ON a.tailnum = b.tailnum AND random() < 0.5", "in the condition of a join"),
    ("SELECT 1 FROM flights LIMIT (random() * 3)::INT", r"random\(\) in LIMIT"),
    ("SELECT list(id + random()) OVER (ORDER BY id) FROM flights", "differ by evaluation"),
    ("SELECT nextval('numbers') FROM flights", "nextval"),
    ("SELECT getvariable('x') FROM flights", "getvariable"),
    ("SELECT struct_pack(month) FROM flights", "struct_pack"),
    ("SELECT age(dep) FROM flights", "age"),
    ("SELECT generate_subscripts(stops, 2) FROM flights", "generate_subscripts"),
    ("SELECT dep::TIMESTAMP_NS = dep FROM (SELECT make_timestamp_ns(id) AS dep FROM flights)", "TIMESTAMP_NS"),
    ("SELECT id FROM flights f WHERE EXISTS (FROM planes p WHERE round(f.id + p.seats) > 3)", "the one around it"),
    ("SELECT (SELECT list(p.seats ORDER BY f.id, p.seats) FROM planes p) FROM flights f", "the one around it"),
    ("SELECT f.id FROM flights f JOIN (SELECT dep_delay::FLOAT AS id FROM flights) g USING (id)", "Joining"),
    ("SELECT id FROM flights WHERE tags IN (SELECT tags FROM flights)", "Joining"),
    ("SELECT tags FROM flights UNION SELECT tags FROM flights", "Grouping"),
    (
        "SELECT f.id FROM planes p RIGHT JOIN airlines a ON p.seats = 1, flights f FULL JOIN planes q ON f.id = 1",
        "Several joins between commas",
    ),
    ("SELECT 1 FROM flights f ASOF JOIN planes p ON f.id + p.seats >= 3", "ASOF"),
    ("SELECT 1 FROM flights f ASOF JOIN planes p ON f.tailnum = p.tailnum", "ASOF"),
    ("SELECT DISTINCT carrier FROM flights f ORDER BY f.month + 1", "ORDER BY month after SELECT DISTINCT"),
    ("SELECT carrier COLLATE NOCASE AS c FROM flights", "COLLATE"),
    ("SELECT DISTINCT lower(carrier COLLATE NOACCENT) AS c FROM flights", "COLLATE"),
    ("SELECT count(*) FROM flights GROUP BY carrier COLLATE NOCASE", "COLLATE"),
    ("SELECT max(carrier COLLATE NOCASE) FROM flights", "COLLATE"),
    ("SELECT id FROM flights WHERE carrier COLLATE NOCASE IN (SELECT carrier FROM airlines)", "COLLATE"),
    ("SELECT max(carrier COLLATE NOCASE) OVER (ORDER BY id) FROM flights", "COLLATE"),
    ("SELECT carrier::ENUM('UA', 'AA', 'B6', 'DL') AS c FROM flights ORDER BY c", "ENUM"),
    ("SELECT max([carrier::ENUM('UA', 'AA', 'B6', 'DL')]) FROM flights", "ENUM"),
    ("SELECT (month, day) FROM flights", "without names"),
    ("SELECT ARRAY(SELECT id FROM flights) FROM planes", "ARRAY over a query"),
    ("SELECT * FROM flights, repeat(1, 3) WITH ORDINALITY", "ORDINALITY"),
    ("WITH RECURSIVE r AS (SELECT id FROM flights UNION SELECT id % 7 FROM r) FROM r", "WITH RECURSIVE … UNION is not"),
    (
        "WITH RECURSIVE r(id) USING KEY (id) AS (SELECT id FROM flights UNION SELECT id % 7 FROM r) FROM r",
        "WITH RECURSIVE … USING KEY",
    ),
    ("SELECT sum(id) OVER (ORDER BY unnest(stops)) FROM flights", "unnest in an aggregate or a window"),
    ("SELECT v.a FROM (SELECT carrier::VARIANT AS v FROM flights)", 'The field "a" of VARIANT'),
    ("SELECT j.a FROM (SELECT carrier::JSON AS j FROM flights)", 'The field "a" of JSON'),
    ("SELECT max(p) FROM (SELECT row(month, day) AS p FROM flights)", "without names"),
    (
        "SELECT month FROM flights GROUP BY month HAVING max(COLUMNS(['month'])) > 1",
        r"COLUMNS\(…\) is supported on Spark in",
    ),
    ("SELECT count(*) FROM flights GROUP BY COLUMNS(['month'])", r"COLUMNS\(…\) is supported on Spark in"),
    ("SELECT 1 FROM planes p JOIN airlines ON COLUMNS(*) IS NOT NULL", r"COLUMNS\(…\) is supported on Spark in"),
    ('SELECT id FROM flights WHERE "columns"(*) IS NOT NULL', r"COLUMNS\(…\) is supported on Spark in"),
    ("SELECT COLUMNS(lambda c: c = 'id') FROM flights", "COLUMNS with anything but"),
]


@pytest.mark.parametrize(("text", "named"), REFUSED)
def test_what_spark_cannot_do_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=named):
        _plan(text).for_spark()


PARAMETERS = {
    "text": 'it\'s \\ a "test"\n\t`x` ${y} ${env:HOME} :z é',
    "data": b"\x00\xffab",
    "none": None,
    "number": -7,
    "exact": Decimal("-12.340"),
    "real": -1.5e-7,
    "day": date(2013, 2, 3),
    "moment": datetime(2013, 3, 10, 2, 30, 0, 123456),
    "many": [1, -2, 3],
    "names": ["UA", "it's"],
}


def test_parameters_reach_spark_as_they_are(spark: Any, folder: Path) -> None:
    text = (
        "SELECT :text AS a, :data AS b, :none AS c, :number AS d, :exact AS e, :real AS f, :day AS g, :moment AS h, "
        ":many AS i, id FROM flights WHERE id IN :many OR carrier IN :names ORDER BY id LIMIT 5"
    )
    operation = parse(text, PARAMETERS)[0].operation
    assert isinstance(operation, Query)
    plan = plan_query(operation, _Resolver())
    _, rows = _spark(plan, spark, folder)
    _, expected = _duckdb(plan)
    assert _rows(rows, True) == _rows(expected, True)
    assert rows[0][0] == PARAMETERS["text"]
    assert rows[0][7] == PARAMETERS["moment"]


def _columns(name: str, **defaults: str) -> list[Column]:
    return [
        Column.build(field.name, from_arrow(field.type), number * 10 + 1, default_value=defaults.get(field.name))
        for number, field in enumerate(TABLES[name].schema)
    ]


WRITES = [
    "INSERT INTO planes VALUES ('a', 1, 2), ('b', '3', 4.5), (NULL, DEFAULT, NULL)",
    "INSERT INTO planes (seats, tailnum) SELECT dep_delay, carrier FROM flights WHERE id < 50",
    "INSERT INTO planes SELECT fare, fare, month FROM flights WHERE id < 50",
    "INSERT INTO planes BY NAME SELECT id AS seats, upper(tailnum) AS tailnum FROM flights WHERE id < 50",
    "INSERT INTO planes DEFAULT VALUES",
    "DELETE FROM planes WHERE seats > 100 OR year IS NULL",
    "DELETE FROM planes p USING flights f WHERE f.tailnum = p.tailnum AND f.month = 3",
    "DELETE FROM planes WHERE tailnum IN (SELECT tailnum FROM flights WHERE month = 3)",
    "UPDATE planes SET seats = seats * 1.25, tailnum = 'x' || tailnum WHERE year > 1993",
    "UPDATE planes p SET year = DEFAULT, seats = f.month FROM flights f WHERE f.tailnum = p.tailnum AND f.id < 17",
    "UPDATE planes SET seats = (SELECT max(month) FROM flights f WHERE f.tailnum = planes.tailnum)",
]


@pytest.mark.parametrize("text", WRITES)
def test_writes_on_spark_are_those_of_duckdb(spark: Any, folder: Path, text: str) -> None:
    operation = parse(text)[0].operation
    columns = _columns("planes", year="1999")
    if isinstance(operation, Insert):
        plan = plan_insert(operation, columns, _Resolver())
    elif isinstance(operation, Update):
        plan = plan_update(operation, columns, _Resolver())
    else:
        assert isinstance(operation, Delete)
        plan = plan_delete(operation, _Resolver())
    names, rows = _spark(plan, spark, folder)
    expected_names, expected = _duckdb(plan)
    assert names == expected_names
    assert rows
    assert _rows(rows, False) == _rows(expected, False)


@pytest.mark.parametrize("value", ["-1", "256", "256.5::DOUBLE", "'300'"])
def test_an_unsigned_column_takes_nothing_out_of_range(spark: Any, folder: Path, value: str) -> None:
    plan = _plan(f"SELECT CAST({value} AS UTINYINT) AS tiny FROM planes LIMIT 1")
    with pytest.raises(Exception, match=r"UINT8|UTINYINT"):
        _spark(plan, spark, folder)
    with pytest.raises(duckdb.Error):
        _duckdb(plan)
