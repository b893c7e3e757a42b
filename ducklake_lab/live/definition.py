"""The definition of a live table, kept as a tag of the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ducklake_lab.catalog.attachments import LIVE
from ducklake_lab.errors import CatalogError, CatalogVersionError

#: Version of the tag's form.
_FORM = 1


@dataclass(frozen=True, slots=True)
class Definition:
    """The query of a live table, and where its rows stand.

    Attributes:
        sql: the query in DuckDB's spelling, with a placeholder for the lake's alias as in a view.
        schema: the schema in which unqualified names are looked up.
        snapshot: the snapshot of the sources that the rows are computed from.
        sources: the uuids of the tables that the query reads, with their names then.
        entries: texts of the views and macros that the query expands, by their names.
        settings: settings of the session that computed the rows.
    """

    sql: str
    schema: str
    snapshot: int = -1
    sources: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Returns the value of the tag."""
        parts = {
            "form": _FORM,
            "sql": self.sql,
            "schema": self.schema,
            "snapshot": self.snapshot,
            "sources": dict(sorted(self.sources.items())),
            "entries": dict(sorted(self.entries.items())),
            "settings": dict(sorted(self.settings.items())),
        }
        return json.dumps(parts, ensure_ascii=False)


def read_definition(text: str, table: str) -> Definition:
    """Returns the definition in the value of a tag.

    Args:
        table: the table's name, for messages.

    Raises:
        CatalogError: the text is none.
        CatalogVersionError: a later version wrote it.
    """
    try:
        parts = json.loads(text)
        form = int(parts["form"])
        if form > _FORM:
            raise CatalogVersionError(
                f"A later version of DuckLake Lab keeps the definition of {table} (form {form}); update DuckLake Lab."
            )
        mappings = [_texts(parts[name]) for name in ("sources", "entries", "settings")]
        return Definition(str(parts["sql"]), str(parts["schema"]), int(parts["snapshot"]), *mappings)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(
            f'The definition of {table}, its tag "{LIVE}", cannot be read; use CREATE OR REPLACE LIVE TABLE.'
        ) from error


def _texts(mapping: Mapping[object, object]) -> dict[str, str]:
    return {str(name): str(value) for name, value in mapping.items()}
