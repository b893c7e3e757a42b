"""A lake whose names and values try to break every view."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import ducklake_lab as dl

NAME = "<script>window.hacked = 1</script> \"'\n\u202eevil"
VALUES = (
    "<script>window.hacked = 2</script>",
    '"><img src=x onerror="window.hacked=3">',
    "quote ' and \" and \\ and `",
    "line\nbreak\r\n\ttab",
    "\u202eright to left\u202c and \u200bzero width",
    "",
    None,
    "x" * 1_000_000,
    "{{ jinja }} $$ :name ${x} %s",
    "🦆 ünï©ødé",
)
WIDE = 500


def build(folder: Path) -> dl.Session:
    """`lake.main`: a table of hostile names and values, one of 500 columns, one of 3,000 ordinary rows."""
    session = dl.connect(f"ducklake:sqlite:{folder}/hostile.sqlite", alias="lake", engine="duckdb")
    quoted = '"' + NAME.replace('"', '""') + '"'
    session.sql(f"CREATE TABLE {quoted} (id INTEGER, {quoted} VARCHAR, nested STRUCT(a VARCHAR, b INTEGER[]))")
    session.sql(f"COMMENT ON TABLE {quoted} IS '<b>not bold</b>'")
    rows = {
        "id": pa.array(range(len(VALUES)), pa.int32()),
        NAME: pa.array(VALUES, pa.string()),
        "nested": pa.array(
            [{"a": value if value is None else value[:100], "b": [1, None]} for value in VALUES],
            pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]),
        ),
    }
    with session.transaction(author=NAME, message=NAME + VALUES[0]):
        session.write(pa.table(rows), f"main.{quoted}")
    session.write(
        pa.table({f"column {number} <i>": pa.array([number], pa.int32()) for number in range(WIDE)}), "wide", "create"
    )
    numbers = range(3000)
    plain = {
        "i": pa.array(numbers, pa.int32()),
        "carrier": pa.array([("UA", "AA", "DL", "EV")[n % 4] for n in numbers]),
        "delay": pa.array([None if n % 10 == 0 else (n * 7919 % 300) - 30.5 for n in numbers], pa.float64()),
    }
    for start in range(0, 3000, 1000):
        part = {name: values.slice(start, 1000) for name, values in plain.items()}
        session.write(pa.table(part), "flights", "append" if start else "create")
    return session
