"""A browser for the data files of a table: sizes, deletions, value ranges, and maintenance calls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import traitlets

from ducklake_lab.errors import UsageError
from ducklake_lab.model.history import FileEntry
from ducklake_lab.model.statistics import counted
from ducklake_lab.widgets import files as files_view
from ducklake_lab.widgets import health as health_view
from ducklake_lab.widgets import ranges
from ducklake_lab.widgets.arrow import pack
from ducklake_lab.widgets.html import clip, visible
from ducklake_lab.widgets.mounted import Mounted, script, styles
from ducklake_lab.widgets.recorded import metadata

if TYPE_CHECKING:
    from ducklake_lab.session.health import Health
    from ducklake_lab.session.listings import FileListing

#: Most intervals drawn for a column; of more files, an even sample.
INTERVALS = 300
#: Most columns tried for the first picture of intervals, and most files for that.
_LOOKED_AT, _FEW = 12, 1000

_ORDERS = {
    "file": lambda entry: entry.path,
    "partition": lambda entry: [str(value) for _, value in entry.partition],
    "snapshot": lambda entry: entry.data_file.begin_snapshot,
    "rows": lambda entry: entry.rows,
    "deleted": lambda entry: entry.deleted / max(entry.rows, 1),
    "size": lambda entry: entry.data_file.file_size_bytes,
}


class FileBrowser(Mounted):
    """A browser for the files of a table: treemap, sizes, intervals per column, health, and a list.

    Attributes:
        files: all files; `browser.selected` is the chosen one.
        sort: [list column, descending].
        column: the column with drawn intervals, or "".
        place: position of the selected file in the list, or None.
        health: maintenance findings; None if nobody checked.
        can_mend: whether maintenance calls can run; not in a lake attached read-only.
    """

    _esm = script("files")
    _css = styles("files")

    overview = traitlets.Bytes().tag(sync=True)
    partitions = traitlets.List(traitlets.Unicode()).tag(sync=True)
    columns = traitlets.List(traitlets.Unicode()).tag(sync=True)
    column = traitlets.Unicode("").tag(sync=True)
    sort = traitlets.List(default_value=["file", False]).tag(sync=True)
    place = traitlets.Int(None, allow_none=True).tag(sync=True)
    findings: traitlets.List[object] = traitlets.List().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)
    inlined = traitlets.Int(0).tag(sync=True)
    can_mend = traitlets.Bool(True).tag(sync=True)

    def __init__(self, files: FileListing, health: Health | None = None, *, can_mend: bool = True) -> None:
        self.files = files
        self.health = health
        self.shown = list(files)
        names = list(files.types)
        self._partitions = {values: at for at, values in enumerate(dict.fromkeys(entry.partition for entry in files))}
        super().__init__(
            overview=self._numbers(),
            partitions=[_partition(values) for values in self._partitions],
            columns=[clip(name, 200) for name in names],
            column=self._first_column(),
            findings=[[one.problem, one.effect, one.call] for one in health] if health is not None else [],
            title=files.title,
            note=f"snapshot {files.snapshot_id}",
            inlined=files.inlined_rows,
            can_mend=can_mend,
        )
        self.observe(self._order, ["sort"])

    def _first_column(self) -> str:
        """Returns a column that the files divide well, if that is cheap to find; otherwise the first column."""
        names = list(self.files.types)
        looked_at = names[:_LOOKED_AT] if len(self.files) <= _FEW else ()
        return next((name for name in looked_at if self._ranges(name)), (*names, "")[0])

    def _ranges(self, name: str) -> ranges.Intervals | None:
        return ranges.of_column(self.files.of_column(name), name, self.files.types[name])

    @traitlets.validate("sort")
    def _known_order(self, proposal: Any) -> list[Any]:
        name, down = proposal["value"]
        if name not in _ORDERS:
            raise UsageError(f"Files are not sorted by {name}; choose one of {', '.join(_ORDERS)}.")
        return [name, bool(down)]

    def _order(self, _change: object) -> None:
        name, down = self.sort
        self.shown = sorted(self.files, key=_ORDERS[str(name)], reverse=bool(down))
        with self.hold_sync():
            self.place = None
            self.overview = self._numbers()

    @property
    def selected(self) -> FileEntry | None:
        return self.shown[self.place] if self.place is not None else None

    def _numbers(self) -> bytes:
        places, shown = self._partitions, self.shown
        return pack(
            {
                "size": ("long", [entry.data_file.file_size_bytes for entry in shown]),
                "rows": ("long", [entry.rows for entry in shown]),
                "deleted": ("long", [entry.deleted for entry in shown]),
                "partition": ("int", [places[entry.partition] for entry in shown]),
                "snapshot": ("long", [entry.data_file.begin_snapshot for entry in shown]),
            }
        )

    def answer_page(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns names and ages of a range of files, in order."""
        start, count = int(content["start"]), int(content["count"])
        rows = self.shown[start : start + count]
        times = self.files.times(rows)
        return {}, [
            pack(
                {
                    "name": ("text", [visible(files_view._short(entry.path)) for entry in rows]),
                    "path": ("text", [visible(clip(entry.path, 1000)) for entry in rows]),
                    "age": ("text", [_age(times.get(entry.data_file.begin_snapshot)) for entry in rows]),
                    "deletes": ("long", [entry.delete_bytes for entry in rows]),
                }
            )
        ]

    def answer_ranges(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns the intervals of a column over the files, lowest first, and its share of NULL."""
        name = str(content["column"])
        stats_of_files = self.files.of_column(name)
        nulls, total = counted(stats_of_files, self.files.types[name])
        intervals = self._ranges(name)
        message: dict[str, object] = {
            "column": name,
            "nulls": nulls / total if total else None,
            "nan": any(stats.contains_nan for stats in stats_of_files),
            "files": len(self.files),
        }
        if intervals is None:
            return message, [pack({"low": ("float", []), "high": ("float", [])})]
        spans = sorted(intervals.spans)
        step = max(1, len(spans) / INTERVALS)
        drawn = [spans[int(at * step)] for at in range(min(len(spans), INTERVALS))]
        message |= {
            "low": visible(clip(intervals.low, 60)),
            "high": visible(clip(intervals.high, 60)),
            "depth": intervals.depth,
        }
        return message, [
            pack({"low": ("float", [low for low, _ in drawn]), "high": ("float", [high for _, high in drawn])})
        ]

    def answer_stats(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the statistics of one file as static HTML."""
        return {"html": files_view.statistics(self.shown[int(content["place"])], self.files.types)}

    def answer_mend(self, content: dict[str, Any]) -> dict[str, Any]:
        """Runs a maintenance call, after its dry run was shown."""
        if self.health is None:
            raise UsageError("This browser has no lake to mend.")
        self.health.run(int(content["index"]))
        return {"done": self.health[int(content["index"])].call}

    def still(self) -> str:
        health = health_view.render(self.health) if self.health else ""
        return files_view.render(self.files) + health

    def record(self) -> dict[str, Any]:
        return metadata(self.files.reads)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: Any) -> Any:
        return self.files[index]

    def __iter__(self) -> Iterator[FileEntry]:
        return iter(self.files)

    def __repr__(self) -> str:
        return repr(self.files)


def _partition(values: tuple[tuple[str, str | None], ...]) -> str:
    pairs = ", ".join(f"{key} = {'NULL' if value is None else value}" for key, value in values)
    return visible(clip(pairs, 120))


def _age(moment: datetime | None) -> str:
    if moment is None:
        return ""
    passed = datetime.now(UTC) - moment.astimezone(UTC)
    hours = passed.total_seconds() / 3600
    return f"{hours / 24:.0f} d" if hours >= 48 else f"{hours:.0f} h" if hours >= 1 else f"{hours * 60:.0f} min"
