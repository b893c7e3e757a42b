"""The order in which live tables are refreshed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ducklake_lab.live.definition import Definition
from ducklake_lab.model.entries import Table


def in_order(
    tables: Sequence[tuple[Table, Definition]], title: Callable[[Table], str]
) -> list[tuple[Table, Definition]]:
    """Returns live tables by name, each after the live tables that it reads; of those that read each other, any first.

    Args:
        title: returns the name of a table with its schema; a source that was replaced is found by it.
    """
    by_uuid = {table.uuid: (table, definition) for table, definition in tables}
    by_title = {title(table): table.uuid for table, _ in tables}
    ordered: dict[str, tuple[Table, Definition]] = {}
    seen: set[str] = set()

    def add(uuid: str) -> None:
        if uuid in seen or uuid not in by_uuid:
            return
        seen.add(uuid)
        for source, name in sorted(by_uuid[uuid][1].sources.items()):
            add(source if source in by_uuid else by_title.get(name, source))
        ordered[uuid] = by_uuid[uuid]

    for table, _ in sorted(tables, key=lambda pair: (pair[0].name, pair[0].table_id)):
        add(table.uuid)
    return list(ordered.values())
