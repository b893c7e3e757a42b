"""Expressions bound and evaluated by DuckDB for workers."""

from __future__ import annotations

import pytest

from ducklake_lab.duckdb.evaluation import Evaluation, connection, constant, is_aggregate, result_type
from ducklake_lab.errors import BindError, SqlError, UnsupportedFeatureError
from ducklake_lab.model.types import DataType

INTEGER, VARCHAR = DataType("int32"), DataType("varchar")
UTC = (("TimeZone", "UTC"),)


def test_types_are_those_of_duckdb_under_the_settings() -> None:
    assert result_type('"_ducklake_0" / 2', (INTEGER,), UTC).name == "float64"
    assert result_type('"_ducklake_0" / 2', (INTEGER,), (*UTC, ("integer_division", "true"))) == INTEGER
    with pytest.raises(BindError, match="nothing"):
        result_type('nothing("_ducklake_0")', (INTEGER,), UTC)
    with pytest.raises(UnsupportedFeatureError, match="BIT"):
        result_type("'101'::BIT", (), UTC)
    # an error leaves nothing behind
    assert result_type('upper("_ducklake_0")', (VARCHAR,), UTC) == VARCHAR


def test_constants_have_the_zone_of_the_settings() -> None:
    kind = DataType("timestamptz")
    berlin = constant("'1970-01-01 01:00:00'", kind, (("TimeZone", "Europe/Berlin"),))
    assert (constant("'1970-01-01 00:00:00'", kind, UTC), berlin) == (0, 0)
    with pytest.raises(SqlError, match=r"^'x' is no INTEGER"):
        constant("'x'", INTEGER, UTC)


def test_a_worker_s_database_reaches_nothing() -> None:
    with pytest.raises(Exception, match="disabled"):
        connection(UTC).execute("SELECT * FROM read_text('/etc/passwd')")
    with pytest.raises(Exception, match="locked"):
        connection(UTC).execute("SET enable_external_access = true")


def test_names_tell_expressions_apart() -> None:
    one = Evaluation('upper("_ducklake_0")', (VARCHAR,), VARCHAR, UTC)
    names = {
        one.name,
        Evaluation('lower("_ducklake_0")', (VARCHAR,), VARCHAR, UTC).name,
        Evaluation('upper("_ducklake_0")', (DataType("json"),), VARCHAR, UTC).name,
        Evaluation('upper("_ducklake_0")', (VARCHAR,), VARCHAR, (("TimeZone", "Asia/Tokyo"),)).name,
    }
    assert len(names) == 4
    assert one.name == Evaluation('upper("_ducklake_0")', (VARCHAR,), VARCHAR, UTC).name


def test_aggregates_are_those_of_duckdb() -> None:
    assert all(map(is_aggregate, ("sum", "MEDIAN", "row_number", "grouping", "geomean", "json_group_array")))
    assert not any(map(is_aggregate, ("upper", "list_sum")))


def test_an_expression_of_several_columns_is_refused() -> None:
    kind = DataType("struct", (("a", DataType("int32")), ("b", DataType("int32"))))
    with pytest.raises(UnsupportedFeatureError, match="gives 2 columns"):
        result_type('unnest("_ducklake_0")', (kind,), UTC)
