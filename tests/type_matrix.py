"""The types of the specification with values at their edges, and what becomes of each: the material of docs/types.md.

python -m tests.type_matrix > docs/types.md
"""

from __future__ import annotations

from ducklake_lab.model.types import DataType
from ducklake_lab.spark.types import spark_type

#: spec name -> (DuckDB's SQL name, values as SQL).
VALUES: dict[str, tuple[str, tuple[str, ...]]] = {
    "boolean": ("BOOLEAN", ("true", "false")),
    "int8": ("TINYINT", ("-128", "127")),
    "int16": ("SMALLINT", ("-32768", "32767")),
    "int32": ("INTEGER", ("-2147483648", "2147483647")),
    "int64": ("BIGINT", ("-9223372036854775808", "9223372036854775807")),
    "int128": ("HUGEINT", ("-5", "12345678901234567890123456789", "'9007199254740993'")),
    "uint8": ("UTINYINT", ("0", "255")),
    "uint16": ("USMALLINT", ("0", "65535")),
    "uint32": ("UINTEGER", ("0", "4294967295")),
    "uint64": ("UBIGINT", ("0", "18446744073709551615")),
    "uint128": ("UHUGEINT", ("0", "12345678901234567890123456789")),
    "float32": ("FLOAT", ("'NaN'", "'inf'", "'-inf'", "'-0.0'", "1.5")),
    "float64": ("DOUBLE", ("'NaN'", "'inf'", "'-inf'", "'-0.0'", "1e300")),
    "decimal(4,2)": ("DECIMAL(4,2)", ("-99.99", "0.01")),
    "decimal(18,3)": ("DECIMAL(18,3)", ("123456789012345.678",)),
    "decimal(38,10)": ("DECIMAL(38,10)", ("1234567890123456789012345678.0123456789",)),
    "date": ("DATE", ("'1992-01-01'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'9999-12-31'")),
    "time": ("TIME", ("'00:00:00'", "'23:59:59.999999'")),
    "timetz": ("TIMETZ", ("'12:00:00.5+02:30'", "'00:00:00-15:59'")),
    "timestamp": ("TIMESTAMP", ("'2020-01-01 00:00:00.123456'", "'infinity'", "'-infinity'", "'1600-01-01'")),
    "timestamp_s": ("TIMESTAMP_S", ("'2020-01-01 00:00:01'", "'1969-12-31 23:59:59'")),
    "timestamp_ms": ("TIMESTAMP_MS", ("'2020-01-01 00:00:00.123'",)),
    "timestamp_ns": ("TIMESTAMP_NS", ("'2020-01-01 00:00:00.123456'", "'1969-12-31 23:59:59.999999'")),
    "timestamptz": ("TIMESTAMPTZ", ("'2020-01-01 00:00:00+02'", "'infinity'")),
    "interval": ("INTERVAL", ("'1 year 2 months 3 days 04:05:06.007'", "'0 days'")),
    "varchar": ("VARCHAR", ("''", "'é☃'", "'NULL'", "'a''b'")),
    "json": ("JSON", ("""'{"a": [1, null]}'""", "'null'")),
    "blob": ("BLOB", ("'\\x00\\xFF'", "''")),
    "uuid": ("UUID", ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'")),
    "geometry": ("GEOMETRY", ("'POINT(1 2)'", "'LINESTRING Z(0 0 1, 2 2 3)'", "'POINT EMPTY'")),
    "variant": ("VARIANT", ("42", "{'a': 1, 'b': [1, 2]}", "'x'")),
    "struct": (
        # the reference cannot read a UUID in a struct that is inlined in SQLite or PostgreSQL
        "STRUCT(a INTEGER, s VARCHAR, h HUGEINT)",
        ("{'a': 1, 's': 'x, y', 'h': 5}", "{'a': NULL, 's': NULL, 'h': NULL}"),
    ),
    "list": ("INTEGER[][]", ("[[1, NULL], []]", "[]")),
    "map": ("MAP(VARCHAR, TIMETZ)", ("MAP {'a': '12:00:00+01'::TIMETZ}", "map([], [])")),
}

#: What a reader has to know beyond the table.
NOTES = {
    "int128": "files hold doubles; on Spark more than 38 digits are an error",
    "uint128": "files hold doubles; on Spark more than 38 digits are an error",
    "timetz": "files hold UTC without a zone; on Spark DuckDB's text",
    "time": "a DataFrame of such rows turns `spark.sql.timeType.enabled` on in your Spark session",
    "timestamp_ns": "Spark has no nanoseconds: cut to microseconds",
    "interval": "files hold milliseconds, and no negative parts; on Spark DuckDB's text",
    "geometry": "WKB on Spark and in Arrow, GeoArrow is taken; no coordinate system; never inlined; a bounding box in the statistics",
    "variant": "in lakes of 1.0 inlined in DuckDB catalogs only; statistics have bounds of fields that keep one type",
    "json": "text on Spark",
    "uuid": "text on Spark",
}
_NESTED = {
    "struct": DataType("struct", (("a", DataType("int32")), ("s", DataType("varchar")), ("h", DataType("int128")))),
    "list": DataType("list", (("element", DataType("list", (("element", DataType("int32")),))),)),
    "map": DataType("map", (("key", DataType("varchar")), ("value", DataType("timetz")))),
}


def document() -> str:
    """The text of docs/types.md."""
    lines = [
        "# Types",
        "",
        "Every type of the specification, what it is on Spark and in Arrow, and the values with which tests send it",
        "both ways between this package and DuckDB's `ducklake` extension: in files and inlined, on each kind of",
        "catalog, with the statistics of both compared. Made by `python -m tests.type_matrix`.",
        "",
        "| DuckLake | DuckDB | Spark | Arrow | values tested | note |",
        "|---|---|---|---|---|---|",
    ]
    for name, (sql, values) in VALUES.items():
        kind = _NESTED.get(name) or DataType(name)
        shown = ", ".join(f"`{value}`" for value in values)
        lines.append(
            f"| {name} | {sql} | {spark_type(kind).simpleString()} | {kind.arrow()} | {shown} | {NOTES.get(name, '')} |"
        )
    lines += [
        "",
        'Columns of lakes of 1.1 can also have the type `null`, which holds nothing but NULL: `"NULL"` in DuckDB, `int` on Spark.',
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(document(), end="")
