"""The text of `extra_stats`: bounding boxes of geometries, fields of variants (spec: ducklake_table_column_stats)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Returns the lesser and the greater of two texts, as values of the type with that name in the spec.
Bounds = Callable[[list[str], str], tuple[str, str]]


def geometry_text(box: Mapping[str, float | None], kinds: Sequence[str]) -> str:
    """The text for a bounding box (`xmin`, `xmax`, …, None where there is none) and kinds of geometry."""
    bounds = ", ".join(f'"{name}": {"null" if value is None else f"{value:.6f}"}' for name, value in box.items())
    return f'{{"bbox": {{{bounds}}}, "types": {json.dumps(sorted(kinds))}}}'


def merge_geometries(texts: Sequence[str]) -> str:
    """Merge some texts into one."""
    parsed = [json.loads(text) for text in texts]
    box: dict[str, float | None] = {}
    for name in parsed[0]["bbox"]:
        values = [part["bbox"].get(name) for part in parsed if part["bbox"].get(name) is not None]
        box[name] = (min(values) if name.endswith("min") else max(values)) if values else None
    return geometry_text(box, sorted({kind for part in parsed for kind in part["types"]}))


def variant_text(fields: Sequence[Mapping[str, object]]) -> str | None:
    """The text for the fields of a variant; None for none."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False) if fields else None


def merge_variants(texts: Sequence[str], bounds: Bounds) -> str | None:
    """The text for the fields that all texts have in one type; None if there are none."""
    first, *others = [{field["field_name"]: field for field in json.loads(text)} for text in texts]
    merged = []
    for name, field in first.items():
        same = [other[name] for other in others if name in other]
        if len(same) == len(others) and all(f["shredded_type"] == field["shredded_type"] for f in same):
            merged.append(_merge_fields([field, *same], bounds))
    return variant_text(merged)


def _merge_fields(fields: Sequence[Mapping[str, Any]], bounds: Bounds) -> dict[str, Any]:
    merged = dict(fields[0])
    for name in ("null_count", "num_values", "column_size_bytes"):
        if all(name in field for field in fields):
            merged[name] = sum(field[name] for field in fields)
        else:
            merged.pop(name, None)
    if "contains_nan" in merged:
        merged["contains_nan"] = any(field.get("contains_nan", True) for field in fields)
    valued = [field for field in fields if field.get("num_values") != field.get("null_count")]
    for index, name in enumerate(("min", "max")):
        if valued and all(name in field for field in valued):
            merged[name] = bounds([field[name] for field in valued], str(merged["shredded_type"]))[index]
        else:
            merged.pop(name, None)
    return merged
