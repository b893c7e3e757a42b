"""Files of the rows that are seen, on their way to a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ducklake_lab.errors import UsageError
from ducklake_lab.widgets.html import clip, count, size

if TYPE_CHECKING:
    from ducklake_lab.session.rows.view import RowsView

#: Bytes that a browser is handed; they pass the memory of the kernel, the server and the page.
MOST_BYTES = 50_000_000
#: Values of an Excel file that is made while somebody waits: about ten seconds.
MOST_EXCEL_VALUES = 300_000
#: By ending: the name of the kind of file, and its media type.
KINDS: Mapping[str, tuple[str, str]] = {
    "csv": ("CSV", "text/csv"),
    "parquet": ("Parquet", "application/vnd.apache.parquet"),
    "xlsx": ("Excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
}


def offered() -> list[list[str]]:
    """Endings and names of the kinds of files that can be made here."""
    from ducklake_lab.session.rows.saving import writes_excel

    return [[ending, name] for ending, (name, _) in KINDS.items() if ending != "xlsx" or writes_excel()]


def file_of(data: RowsView, ending: str) -> tuple[dict[str, str], bytes]:
    """The rows that are seen as a file: its name and media type, and what is in it.

    Raises:
        UsageError: there is no such kind, or it is too much for a browser.
        UnsupportedFeatureError, ConstraintError: such a file cannot hold a value.
    """
    if ending not in KINDS:
        raise UsageError(f'There is no kind of file "{ending}"; there are {", ".join(KINDS)}.')
    label, media = KINDS[ending]
    instead = f'in Python, save("rows.{ending}") of a view writes it to disk'
    values = data.passing * len(data.columns)
    if ending == "xlsx" and values > MOST_EXCEL_VALUES:
        raise UsageError(
            f"{count(values)} values are more than the {count(MOST_EXCEL_VALUES)} of an Excel file for a browser; {instead}."
        )
    with TemporaryDirectory(prefix="ducklake-") as folder:
        path = Path(folder) / f"rows.{ending}"
        data.save(path, part=True)
        bytes_made = path.stat().st_size
        if bytes_made > MOST_BYTES:
            raise UsageError(
                f"The {label} file has {size(bytes_made)}, more than the {size(MOST_BYTES)} that a browser is handed; {instead}."
            )
        content = path.read_bytes()
    part = f"-first-{data.total}-rows" if data.partial else ""
    name = clip(re.sub(r"[^\w.-]+", "-", data.title).strip("-.") or "rows", 80)
    return {"name": f"{name}{part}.{ending}", "media": media}, content
