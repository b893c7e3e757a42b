"""The lineage of labelled statements: nearly all edges are found, and no false one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ducklake_lab.errors import DuckLakeError, EntryNotFoundError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse
from ducklake_lab.sql.plan import InputRows, NamedRows, Resolver
from ducklake_lab.sql.planning.lineage import lineage_of
from tests.unit.lineage.labelled import statements

_I, _S = DataType("int32"), DataType("varchar")
_TABLES: dict[str, Sequence[tuple[str, DataType]]] = {
    "a": [("id", _I), ("x", _I), ("s", _S)],
    "b": [("id", _I), ("y", _I)],
    "c": [
        ("k", _I),
        ("st", DataType("struct", (("f", _I), ("g", _S)))),
        ("l", DataType("list", (("element", _I),))),
    ],
    "va": [("i", _I), ("twice", _I)],
    "vb": [("id", _I), ("y", _I)],
}


class _Tables(Resolver):
    def table(self, name: op.TableName, at: op.At | None) -> NamedRows:
        if name.name not in _TABLES:
            raise EntryNotFoundError(f"There is no table {name.name}.")
        return InputRows(_TABLES[name.name], ("main", "lake"))


def test_edges_of_labelled_statements():
    labelled = found_edges = 0
    missed, false, count = [], [], 0
    for text, target, labels in statements():
        count += 1
        expected = {(origin, name) for name, origins in labels.items() for origin in origins}
        try:
            operation = parse(text)[0].operation
            found = lineage_of(operation, _Tables(), target)  # type: ignore[arg-type]
        except DuckLakeError as error:
            missed.append((text, str(error)))
            labelled += len(expected)
            continue
        edges = {
            (f"{found.sources[view].name.name}.{column}", flow.name)
            for flow in found.flows
            for view, column in flow.origins
        }
        labelled += len(expected)
        found_edges += len(expected & edges)
        if expected - edges:
            missed.append((text, expected - edges))
        if edges - expected:
            false.append((text, edges - expected))
    assert count >= 200
    assert false == []
    assert found_edges >= 0.95 * labelled, missed
    assert len(missed) <= 3, missed


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        (
            "MERGE INTO b USING a ON b.id = a.id WHEN MATCHED AND y > 3 THEN DELETE "
            "WHEN NOT MATCHED AND s = 'p' THEN INSERT VALUES (a.id, a.x)",
            "a.id a.s b.id b.y",
        ),
        ("SELECT id FROM a QUALIFY row_number() OVER w = 1 WINDOW w AS (PARTITION BY s ORDER BY x)", "a.s a.x"),
        ("SELECT id FROM a LIMIT (SELECT max(y) FROM b)", "b.y"),
    ],
)
def test_conditions_of_merge_windows_and_limits(text: str, conditions: str):
    found = lineage_of(parse(text)[0].operation, _Tables(), ["id", "y"])  # type: ignore[arg-type]
    names = {f"{found.sources[view].name.name}.{column}" for view, column in found.conditions}
    assert names == set(conditions.split())
