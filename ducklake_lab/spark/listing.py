"""Reads the files of a scan as one Spark relation: by their paths, or by a listing of their folder.

Spark looks up each path by itself: four requests per file to an object store, one after another. A folder
is listed by the thousand. Other files in it are excluded by `_metadata.file_path`, which Spark compares before it makes
tasks, and then again for each row. So a scan uses a listing if that is cheaper in total.

An empty folder is passed together with the listed one. For a single folder, Spark makes three more requests: whether it
is a folder, and whether a stream left its log there, which would then replace the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ducklake_lab.file_paths import hadoop_uri, is_below, is_local, is_object
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.spark.runtime import is_connect, scratch
from ducklake_lab.storage import Storage

#: Seconds per file, by path and in a listing: (local, object store) each.
_BY_PATH, _LISTED = (1.2e-4, 0.1), (2e-5, 1e-4)
#: Seconds per path in a condition, and per row for the condition.
_COMPARED, _PER_ROW = 2e-5, 2e-8
#: Seconds that a listing must save.
_WORTH = 0.05
#: Names that Spark may omit from a listing.
_HIDDEN = re.compile(r"/[_.]|\._COPYING_$")


def relation(
    spark: SparkSession, plan: ScanPlan, files: Sequence[ScanFile], fields: Sequence[T.StructField]
) -> DataFrame:
    """Returns the rows of the files, with those fields.

    Raises:
        AnalysisException: a file is missing.
    """
    reader = (
        spark.read.schema(T.StructType(list(fields)))
        # paths are files: no folder in them defines a column by `key=value`
        .option("recursiveFileLookup", "true")
    )
    place = 0 if all(is_local(file.path) for file in files) else 1
    by_path = _BY_PATH[place] * len(files) - _WORTH
    by_folder = _LISTED[place] * max(plan.files_total, len(files))
    # plans of Spark Connect list again at run time, when a missing file would read as no rows
    if by_folder < by_path and not is_connect(spark):
        folder = _common_folder(plan, files)
        if folder is not None:
            frame = reader.parquet(literal(folder), literal(_empty_folder()))
            condition = _condition(folder, files, by_path - by_folder)
            if condition is not None:
                return frame.where(condition) if condition else frame
    return reader.parquet(*(literal(file.path) for file in files))


def is_hidden(path: str) -> bool:
    """Whether Spark may consider a file hidden, and read it as no rows."""
    return _HIDDEN.search("/" + path.rpartition("/")[2]) is not None


def literal(path: str) -> str:
    """Returns the path with pattern characters escaped.

    Patterns must stay on: without them Spark does not check that the file exists, and a missing
    one would read as no rows.
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _empty_folder() -> str:
    folder = scratch() / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    return f"file://{folder}"


def _common_folder(plan: ScanPlan, files: Sequence[ScanFile]) -> str | None:
    """Returns the innermost folder with all files; None outside of the table's data path, or if it cannot be listed."""
    base = plan.data_path.rstrip("/")
    folders = {file.path.rpartition("/")[0] for file in files}
    if not (is_local(base) or is_object(base)):
        return None
    if not all(folder == base or is_below(folder, base) for folder in folders):
        return None
    parts = [folder.split("/") for folder in folders]
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(min(parts), max(parts), strict=False))
    return "/".join(part for part, _ in shared)


def _condition(folder: str, files: Sequence[ScanFile], most: float) -> str | None:
    """Returns SQL that excludes the other files of a listed folder; None if it would cost more than `most` seconds.

    This listing is newer than Spark's. A file that Spark found is in this listing too, or was deleted in between,
    which raises an error when it is read.
    """
    listed = _listed(folder)
    wanted = {file.path[len(folder) :] for file in files}
    if listed is None or not wanted <= listed or any(map(_HIDDEN.search, wanted)):
        return None
    others = listed - wanted
    if not others:
        return ""
    compared, negation = (others, "NOT ") if len(others) < len(wanted) else (wanted, "")
    rows = sum(file.data_file.record_count for file in files)
    if _COMPARED * len(compared) + _PER_ROW * rows > most:
        return None
    uris = sorted(hadoop_uri(folder + path) for path in compared)
    if any("'" in uri or "\\" in uri for uri in uris):
        return None
    texts = ", ".join(f"'{uri}'" for uri in uris)
    return f"_metadata.file_path {negation}IN ({texts})"


def _listed(folder: str) -> set[str] | None:
    """Returns the relative paths of all files below a folder; None if Spark's listing may differ."""
    if is_local(folder):
        entries = list(_walk(folder.removeprefix("file://")))
        if any(entry.is_symlink() for entry in entries):
            return None
        start = len(folder.removeprefix("file://"))
        return {entry.path[start:] for entry in entries if entry.is_file()}
    return {path[len(folder) :] for path in Storage().list_files(folder + "/")}


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)
