"""Values of columns that are in the paths of files, as `name=value`."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from ducklake_lab.scan.plan import ScanFile

#: Stands for NULL.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def hive_values(path: str) -> dict[str, str | None]:
    """The values in a path, by name in lower case."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equal, value = part.partition("=")
        if equal:
            values[unquote(name).casefold()] = None if value == NO_VALUE else unquote(value)
    return values


def path_values(file: ScanFile) -> Iterator[tuple[int, str | None]]:
    """(column id, text) of the columns that a file's mapping takes from its path."""
    mapping = file.data_file.mapping
    if mapping is None or not any(column.is_partition for column in mapping.columns):
        return
    values = hive_values(file.path)
    for column in mapping.columns:
        if column.is_partition:
            yield column.target_field_id, values.get(column.source_name.casefold())
