"""The log of a Delta table over exported files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError, UsageError
from ducklake_lab.foreign.delta_reading import TYPES
from ducklake_lab.foreign.exporting import (
    Exported,
    ExportedFile,
    FormatRules,
    check_columns,
    check_target,
    check_values,
    make,
    put_files,
)
from ducklake_lab.foreign.library import module, worded
from ducklake_lab.model.entries import Column
from ducklake_lab.scan.plan import ScanPlan

_NAMES = {kind: name for name, kind in TYPES.items()}
RULES = FormatRules("a Delta table", frozenset(_NAMES), by_id=False)
#: Characters that names of columns lack in tables without a mapping of columns.
_REFUSED = re.compile(r"[ ,;{}()\n\t=]")


def export(plan: ScanPlan, name: str, path: str, snapshot_id: int, *, overwrite: bool) -> Exported:
    """Export the rows of a plan as a Delta table, or as its next version; the log comes last.

    Args: see `iceberg_writing.export`.

    Raises:
        UnsupportedFeatureError: the package is missing, or Delta lacks a type, a name or a value. Nothing was written.
        EntryExistsError: there is something in the folder already.
        UsageError: a file cannot be written.
    """
    folder = check_target(path)
    module("delta", "deltalake")
    check_columns(plan.columns, name, RULES)
    _check_names(plan.columns, name)
    exists = _exists(folder, overwrite=overwrite)
    check_values(plan, name, RULES)

    def work(made: list[str]) -> Exported:
        files = list(put_files(plan, folder, RULES, made))
        actions = module("delta", "deltalake.transaction")
        schema = module("delta", "deltalake").Schema.from_json(
            json.dumps({"type": "struct", "fields": [_field(column) for column in plan.columns]})
        )
        added = [
            actions.AddAction(
                path=file.name,
                size=file.size,
                partition_values={},
                modification_time=int(os.stat(folder / file.name).st_mtime * 1000),
                data_change=True,
                stats=json.dumps({"numRecords": file.records}),
            )
            for file in files
        ]
        try:
            with worded(lambda said: UsageError(f"The log of {folder} cannot be written: {said}.")):
                mode = "overwrite" if exists else "error"
                actions.create_table_with_add_actions(folder.as_uri(), schema, added, mode=mode)
        except BaseException:
            # an interrupt, or an error of what follows a commit, comes when the log has the files
            if _is_named(folder, files):
                made.clear()
            raise
        linked = sum(file.is_linked for file in files)
        rows = sum(file.records for file in files)
        return Exported("delta", str(folder), snapshot_id, rows, linked, len(files) - linked)

    return make(folder, folder, work)


def _exists(folder: Path, *, overwrite: bool) -> bool:
    """Return whether there is a table that the export replaces."""
    if not folder.exists() or (folder.is_dir() and not os.listdir(folder)):
        return False
    if not overwrite:
        raise EntryExistsError(f"There is something in {folder} already; export elsewhere, or with overwrite=True.")
    if not module("delta", "deltalake").DeltaTable.is_deltatable(folder.as_uri()):
        raise EntryExistsError(f"{folder} has no Delta table, so it is not overwritten; export elsewhere.")
    return True


def _is_named(folder: Path, files: Sequence[ExportedFile]) -> bool:
    """Return whether the log names one of the files."""
    logs = (folder / "_delta_log").glob("*.json")
    return bool(files) and any(files[0].name in log.read_text(encoding="utf-8") for log in logs)


def _check_names(columns: Sequence[Column], name: str) -> None:
    for column in columns:
        for part in column.walk():
            if _REFUSED.search(part.name):
                raise UnsupportedFeatureError(
                    f'Exporting {name} is not supported: a Delta table has no column named "{part.name}"; rename it.'
                )


def _field(column: Column) -> dict[str, Any]:
    return {"name": column.name, "type": _type(column), "nullable": True, "metadata": {}}


def _type(column: Column) -> Any:
    if column.type == "struct":
        return {"type": "struct", "fields": [_field(child) for child in column.children]}
    if column.type == "list":
        return {"type": "array", "elementType": _type(column.children[0]), "containsNull": True}
    if column.type == "map":
        key, value = map(_type, column.children)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if (size := column.data_type.decimal) is not None:
        return f"decimal({size[0]},{size[1]})"
    return _NAMES[column.type]
