"""Random tables that both clients change by turns: after every step each reads every snapshot as the other does."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.comparing import attach, detach, our_history, reference_history
from tests.memory import FOLDER

#: Types of columns, and literals of each.
TYPES: dict[str, st.SearchStrategy[str]] = {
    "INTEGER": st.integers(-(2**31), 2**31 - 1).map(str),
    "BIGINT": st.integers(-(2**63) + 1, 2**63 - 1).map(str),
    "UTINYINT": st.integers(0, 255).map(str),
    "DOUBLE": st.sampled_from(["0.0", "-0.0", "1.5e300", "'nan'", "'-inf'", "0.1"]),
    "DECIMAL(9,2)": st.decimals(-9999999, 9999999, places=2).map(str),
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "VARCHAR": st.text("ab'é\n\U0001f986", max_size=5).map(lambda text: "'" + text.replace("'", "''") + "'"),
    "BLOB": st.sampled_from(["''::BLOB", r"'\x00\xFF'::BLOB"]),
    "DATE": st.dates().map(lambda day: f"DATE '{day}'"),
    "TIMESTAMP": st.datetimes().map(lambda time: f"TIMESTAMP '{time}'"),
    "UUID": st.uuids().map(lambda uuid: f"'{uuid}'::UUID"),
    "INTEGER[]": st.sampled_from(["[]", "[1, NULL]", "[2]"]),
    "STRUCT(a INTEGER, b VARCHAR)": st.sampled_from(["{'a': 1, 'b': NULL}", "{'a': NULL, 'b': 'x'}"]),
}
WIDER = {"INTEGER": "BIGINT", "UTINYINT": "UINTEGER"}


class Step(NamedTuple):
    """A statement, and which client runs it."""

    ours: bool
    sql: str


def literal(draw: st.DrawFn, kind: str) -> str:
    return draw(st.just("NULL") | TYPES[kind]) if kind in TYPES else "NULL"


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """A table `t` with a key `k`, and changes and maintenance of it that are possible when their turn comes."""
    columns = {f"c{n}": kind for n, kind in enumerate(draw(st.lists(st.sampled_from(list(TYPES)), max_size=3)))}
    definition = ", ".join(["k INTEGER", *(f"{name} {kind}" for name, kind in columns.items())])
    steps = [Step(draw(st.booleans()), f"CREATE TABLE t ({definition})")]
    changes = range(draw(st.integers(3, 9)))
    return [*steps, *(Step(draw(st.booleans()), _statement(draw, columns, number)) for number in changes)]


def _statement(draw: st.DrawFn, columns: dict[str, str], number: int) -> str:
    keys = st.integers(0, 40)
    low = draw(keys)
    where = f"WHERE k BETWEEN {low} AND {low + draw(st.sampled_from([0, 3, 20]))}"
    name = draw(st.sampled_from(list(columns))) if columns else None
    match draw(st.sampled_from(["insert"] * 4 + ["delete"] * 2 + ["update", "merge", "alter"] * 2 + ["maintain"] * 3)):
        case "update" if name is not None:
            return f"UPDATE t SET {name} = {literal(draw, columns[name])} {where}"
        case "delete" | "update":
            return f"DELETE FROM t {where}"
        case "merge" if name is not None:
            value = f"{literal(draw, columns[name])}::{columns[name]}"
            source = ", ".join(
                f"({key}, {value})" for key in draw(st.lists(keys, min_size=1, max_size=15, unique=True))
            )
            return (
                f"MERGE INTO t USING (VALUES {source}) AS s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET {name} = s.v "
                f"WHEN NOT MATCHED THEN INSERT (k, {name}) VALUES (s.k, s.v)"
            )
        case "alter":
            return _alteration(draw, columns, name, number)
        case "maintain":
            return draw(
                st.sampled_from(
                    [
                        "CALL ducklake_flush_inlined_data('lake')",
                        "CALL ducklake_merge_adjacent_files('lake')",
                        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
                    ]
                )
            )
        case _:
            row = ", ".join(["i", *(literal(draw, kind) for kind in columns.values())])
            count = draw(st.sampled_from([1, 3, 12, 30]))
            names = ", ".join(["k", *columns])
            return f"INSERT INTO t ({names}) SELECT {row} FROM range({low}, {low + count}) AS r(i)"


def _alteration(draw: st.DrawFn, columns: dict[str, str], name: str | None, number: int) -> str:
    choices = ["add"] + ["drop", "rename", "widen"] * (name is not None)
    match draw(st.sampled_from(choices)):
        case "drop" if name is not None:
            del columns[name]
            return f"ALTER TABLE t DROP COLUMN {name}"
        case "rename" if name is not None:
            # the name of a column that may be gone, in whose files it still stands
            new = draw(st.sampled_from([f"r{number}", *(other for other in ("c0", "c1") if other not in columns)]))
            columns[new] = columns.pop(name)
            return f"ALTER TABLE t RENAME COLUMN {name} TO {new}"
        case "widen" if name is not None and columns[name] in WIDER:
            columns[name] = WIDER[columns[name]]
            return f"ALTER TABLE t ALTER COLUMN {name} SET DATA TYPE {columns[name]}"
        case _:
            kind = draw(st.sampled_from(["INTEGER", "VARCHAR", "DOUBLE", "DATE"]))
            columns[f"a{number}"] = kind
            # both take literals only there, and `DATE '…'` is a cast
            default = f" DEFAULT {draw(TYPES[kind]).removeprefix('DATE ')}" if draw(st.booleans()) else ""
            return f"ALTER TABLE t ADD COLUMN a{number} {kind}{default}"


_DRAWN = settings(
    max_examples=4 * int(os.environ.get("DUCKLAKE_LAB_EXAMPLES", "1")),
    # histories are short as they are, and shrinking one takes minutes
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(4))
def test_each_reads_what_either_wrote(number: int, reference: duckdb.DuckDBPyConnection) -> None:
    check = _DRAWN(given(steps=histories())(lambda steps: _check(steps, reference)))
    # the histories of a number are the same each time
    (check if "DUCKLAKE_LAB_EXAMPLES" in os.environ else seed(number)(check))()


def _check(steps: list[Step], reference: duckdb.DuckDBPyConnection) -> None:
    """Each reads the history of the lake as the other does, after each step."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    uri = f"ducklake:{folder}/lake.ducklake"
    try:
        with dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb") as session:
            for step in steps:
                if step.ours:
                    session.sql(step.sql)
                else:
                    attach(reference, uri)
                    try:
                        reference.execute(step.sql)
                    finally:
                        detach(reference)
                assert our_history(session, "duckdb") == reference_history(reference, uri), step
    finally:
        shutil.rmtree(folder, ignore_errors=True)
