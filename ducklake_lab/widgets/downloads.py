"""Files of the filtered rows for a browser to download."""

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

#: Most bytes of a download; they pass the memory of kernel, server and page.
MOST_BYTES = 50_000_000
#: Most values of an Excel file for download, which takes about ten seconds.
MOST_EXCEL_VALUES = 300_000
#: Name and media type of each file format, by ending.
KINDS: Mapping[str, tuple[str, str]] = {
    "csv": ("CSV", "text/csv"),
    "parquet": ("Parquet", "application/vnd.apache.parquet"),
    "xlsx": ("Excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
}


def offered() -> list[list[str]]:
    """Returns the endings and names of the available file formats."""
    from ducklake_lab.session.rows.saving import writes_excel

    return [[ending, name] for ending, (name, _) in KINDS.items() if ending != "xlsx" or writes_excel()]


def file_of(data: RowsView, ending: str) -> tuple[dict[str, str], bytes]:
    """Returns the filtered rows as a file: name and media type, and contents.

    Raises:
        UsageError: the format is unknown, or the file is too large for a browser.
        UnsupportedFeatureError, ConstraintError: the format cannot hold a value.
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
