"""Values that a session returns, compared with DuckDB's: Python values, pandas, Arrow, for every type at its edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.handing import texts_to_show
from ducklake_lab.session.rows.result import Result
from ducklake_lab.widgets import values as shown_values
from tests.type_matrix import VALUES

pytestmark = pytest.mark.sampled(5)

#: Further values, at which the forms of a type differ between libraries.
EDGES: dict[str, tuple[str, ...]] = {
    "int128": ("'-170141183460469231731687303715884105728'", "'170141183460469231731687303715884105727'"),
    "uint128": ("'170141183460469231731687303715884105727'",),
    "float32": ("0.1", "3.4028235e38"),
    "float64": ("123456789.123456789", "5e-324"),
    "decimal(38,10)": ("-9999999999999999999999999999.9999999999",),
    "date": ("'5877642-06-25 (BC)'", "'5881580-07-10'"),
    "timestamp": ("'290309-12-22 (BC) 00:00:00'", "'294247-01-10 04:00:54.775806'", "'0044-03-15 (BC) 12:00:00'"),
    "timestamp_s": ("'infinity'", "'-infinity'"),
    "timestamp_ms": ("'infinity'", "'-infinity'"),
    "timestamp_ns": ("'infinity'", "'-infinity'", "'2020-01-01 00:00:00.123456789'", "'1677-09-22 00:00:00'"),
    "timestamptz": ("'-infinity'", "'0044-03-15 (BC) 12:00:00+00'", "'294247-01-10 04:00:54.775806+00'"),
    "interval": ("'-1 month'", "'3 days'", "'-00:00:00.000001'"),
    "timetz": ("'24:00:00+00'",),
    "time": ("'24:00:00'",),
}
#: Types that hold others of them.
NESTED: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "itself": (lambda sql: sql, lambda value: value),
    "list": (lambda sql: f"{sql}[]", lambda value: f"[{value}, NULL]"),
    "struct": (
        lambda sql: f'STRUCT("aB" {sql}, "from" {sql}[])',
        lambda value: f"{{'aB': {value}, 'from': [{value}]}}",
    ),
    "map": (lambda sql: f"MAP(VARCHAR, {sql})", lambda value: f"MAP {{'k': {value}}}"),
}
_NOT_IN_LAKES = ("variant", "geometry")


def query(name: str, nested: str) -> str:
    """All values of a type, and NULL."""
    sql, values = VALUES[name]
    kind, value = NESTED[nested]
    listed = [value(f"CAST({v} AS {sql})") for v in (*values, *EDGES.get(name, ()))]
    return " UNION ALL ".join(
        f"SELECT {i} AS i, CAST({one} AS {kind(sql)}) AS v" for i, one in enumerate([*listed, "NULL"])
    )


def check(result: Any, expected: duckdb.DuckDBPyRelation, *, arrow: bool = True) -> None:
    """Compares all that is handed out; repr says which types values have, and which NaN are."""
    rows = expected.fetchall()
    if isinstance(result, Result):
        assert repr(result.fetchall()) == repr(rows)
        assert repr(result.fetchone()) == repr(rows[0])
        assert result.types == [str(kind) for kind in expected.types]
    check_pandas(result.pandas(), expected)
    if arrow:
        check_arrow(result.arrow(), expected)


def check_pandas(found: pd.DataFrame, expected: duckdb.DuckDBPyRelation) -> None:
    assert list(found.columns) == expected.columns
    for place, name in enumerate(expected.columns):
        try:
            column = expected.project(name).df()[name]
        except duckdb.Error:
            column = pd.Series([row[place] for row in expected.fetchall()], dtype=object)
        assert found[name].dtype == column.dtype
        assert [_text(value) for value in found[name].array] == [_text(value) for value in column.array]


def _text(value: object) -> str:
    # a timestamp beyond Python's has no repr
    return f"{value.asm8!r} {value.tz}" if isinstance(value, pd.Timestamp) else repr(value)


def check_arrow(found: pa.Table, expected: duckdb.DuckDBPyRelation) -> None:
    if "VARIANT" in str(expected.types[1]):
        return  # DuckDB 1.5 has no form of them; here they are texts
    table = expected.to_arrow_table()
    # names of the parts of lists and maps, and metadata, say nothing of values
    for ours, theirs in zip(found.columns, table.columns, strict=True):
        assert [str(kind) for kind in _leaves(ours.type)] == [str(kind) for kind in _leaves(theirs.type)]
        assert ours.cast(theirs.type).equals(theirs) or repr(ours.to_pylist()) == repr(theirs.to_pylist())


def _leaves(kind: pa.DataType) -> list[Any]:
    if isinstance(kind, pa.ListType | pa.StructType | pa.MapType):
        return [type(kind).__name__, *(leaf for i in range(kind.num_fields) for leaf in _leaves(kind.field(i).type))]
    # other names of one time zone
    return [pa.timestamp(kind.unit, "UTC") if isinstance(kind, pa.TimestampType) and kind.tz else kind]


@pytest.fixture
def theirs() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("name", VALUES)
def test_a_query_in_process(name: str, nested: str, theirs: duckdb.DuckDBPyConnection) -> None:
    with dl.Session(engine="duckdb") as session:
        check(session.sql(query(name, nested) + " ORDER BY i"), theirs.sql(query(name, nested) + " ORDER BY i"))


@pytest.mark.parametrize("inlined", [True, False])
def test_a_table_of_a_lake(inlined: bool, tmp_path: Path, theirs: duckdb.DuckDBPyConnection) -> None:
    names = [name for name in VALUES if name not in _NOT_IN_LAKES]
    kept = {name: f"({query(name, 'itself')}) ORDER BY i" for name in names if inlined or name not in _LOSSY}
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(f"CALL lake.set_option('data_inlining_row_limit', {100 if inlined else 0})")
        for number, text in enumerate(kept.values()):
            session.sql(f"CREATE TABLE t{number} AS FROM {text}")
        for number, text in enumerate(kept.values()):
            check(session.sql(f"FROM t{number} ORDER BY i"), theirs.sql(f"FROM {text}"))
            check(session.table(f"t{number}"), theirs.sql(f"FROM {text}"))


#: Types whose values files do not all hold: some change in them, and infinities of some are refused.
_LOSSY = ("int128", "uint128", "timetz", "interval", "timestamp_s", "timestamp_ms", "map")


def test_answers_of_the_catalog_alone(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (id UUID, m MAP(VARCHAR, INTEGER))")
        found = session.sql("SELECT table_uuid, table_id FROM ducklake_table_info('lake')")
        assert [type(value).__name__ for value in found.fetchall()[0]] == ["UUID", "int"]
        snapshots = session.sql("FROM lake.snapshots()").fetchall()
        assert isinstance(snapshots[-1][3], dict)
        assert not session.spark_started


def test_sums_and_maps_have_pythons_types() -> None:
    with dl.Session(engine="duckdb") as session:
        row = session.sql("SELECT sum(i) AS s, MAP {'a': 1} AS m, count(*) AS n FROM range(3) r(i)").fetchone()
        assert row == (3, {"a": 1}, 3)
        assert type(row[0]) is int


def test_what_arrow_cannot_hold_is_refused() -> None:
    with dl.Session(engine="duckdb") as session:
        found = session.sql(f"SELECT {2**128 - 1}::UHUGEINT AS big")
        assert found.fetchall() == [(2**128 - 1,)]
        with pytest.raises(dl.DuckLakeError, match="Column big holds numbers above"):
            found.arrow()


@pytest.mark.parametrize(
    "value", ["INTERVAL '100000000 years'", "TIMESTAMP '294247-01-10 04:00:54.775806'::TIMESTAMP_S"]
)
def test_what_python_cannot_hold_is_refused(value: str) -> None:
    with dl.Session(engine="duckdb") as session:
        found = session.sql(f"SELECT {value} AS v")
        for fetch in (found.fetchall, found.fetchone):
            with pytest.raises(dl.DuckLakeError, match="Python cannot hold a value of these rows") as caught:
                fetch()
            assert "\n" not in str(caught.value)


def test_columns_of_one_name_are_named_as_duckdb_names_them(theirs: duckdb.DuckDBPyConnection) -> None:
    text = "SELECT 1 AS a, 'infinity'::DATE AS a, 3 AS a"
    with dl.Session(engine="duckdb") as session:
        assert list(session.sql(text).pandas().columns) == list(
            theirs.sql("SELECT 1 AS a, 2 AS a, 3 AS a").df().columns
        )


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("blob", "float64")])
def test_what_is_shown_is_duckdbs_text(name: str, nested: str, theirs: duckdb.DuckDBPyConnection) -> None:
    with dl.Session(engine="duckdb") as session:
        columns = texts_to_show(session.sql(query(name, nested) + " ORDER BY i").carried())
    texts = theirs.sql(f"SELECT v::VARCHAR FROM ({query(name, nested)}) ORDER BY i").fetchall()
    assert [shown_values.text(value) for value in columns[1]] == ["NULL" if text is None else text for (text,) in texts]


def test_describe_keeps_the_case_of_fields() -> None:
    with dl.Session(engine="duckdb") as session:
        found = session.sql("DESCRIBE SELECT {'aB': 1} AS s, INTERVAL 3 DAY AS i").fetchall()
    assert [row[:2] for row in found] == [("s", "STRUCT(aB INTEGER)"), ("i", "INTERVAL")]
