"""The files of a scan as one relation of Spark, which asks for them one by one, or lists the folder that they are in.

Spark looks for each file that it is given: four requests a file to an object store, one after the other. A folder is
listed by the thousand. What else lies there is left out by `_metadata.file_path`, which Spark compares before it makes
tasks, and then again for every row. So a scan lists where that costs less in all.

An empty folder goes with the one that is listed. Of a single folder Spark asks three times more: whether it is one,
and whether a stream left its log there, which would then stand for the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.spark.runtime import is_connect, scratch
from ducklake_lab.storage import Storage, hadoop_uri, is_below, is_local, is_object

#: Seconds that a file takes by its path, and in a listing: local, and in object stores.
_BY_PATH, _LISTED = (1.2e-4, 0.1), (2e-5, 1e-4)
#: Seconds that a path takes in a condition, and the condition for a row.
_COMPARED, _PER_ROW = 2e-5, 2e-8
#: Seconds that a listing has to save.
_WORTH = 0.05
#: Names that Spark may leave out of a listing.
_HIDDEN = re.compile(r"/[_.]|\._COPYING_$")


def relation(
    spark: SparkSession, plan: ScanPlan, files: Sequence[ScanFile], fields: Sequence[T.StructField]
) -> DataFrame:
    """The rows of the files, with those fields.

    Raises:
        AnalysisException: a file is missing.
    """
    reader = (
        spark.read.schema(T.StructType(list(fields)))
        # the paths are files: no folder in them names a column by `key=value`
        .option("recursiveFileLookup", "true")
    )
    place = 0 if all(is_local(file.path) for file in files) else 1
    by_path = _BY_PATH[place] * len(files) - _WORTH
    by_folder = _LISTED[place] * max(plan.files_total, len(files))
    # plans of Spark Connect list anew when they run, and a file that is missing then would read as no rows
    if by_folder < by_path and not is_connect(spark):
        folder = _common_folder(plan, files)
        if folder is not None:
            frame = reader.parquet(literal(folder), literal(_empty_folder()))
            condition = _condition(folder, files, by_path - by_folder)
            if condition is not None:
                return frame.where(condition) if condition else frame
    return reader.parquet(*(literal(file.path) for file in files))


def is_hidden(path: str) -> bool:
    """Whether Spark may take a file for one of its own, and read it as no rows."""
    return _HIDDEN.search("/" + path.rpartition("/")[2]) is not None


def literal(path: str) -> str:
    """The path with what Spark takes for a pattern escaped.

    Patterns must not be switched off instead: Spark then does not look whether such a file is there, and a missing
    one would read as no rows.
    """
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _empty_folder() -> str:
    folder = scratch() / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    return f"file://{folder}"


def _common_folder(plan: ScanPlan, files: Sequence[ScanFile]) -> str | None:
    """The innermost folder with all files; None where that is not the table's own, or cannot be listed here, too."""
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
    """SQL that leaves out the other files in a folder that Spark has listed; None where that takes more seconds.

    The folder is listed after Spark did it. So a file that Spark found is in this listing too, or was deleted between,
    which fails when it is read.
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
    """All files below a folder, by what follows it in their paths; None where Spark may list others."""
    if is_local(folder):
        found = list(_walk(folder.removeprefix("file://")))
        if any(entry.is_symlink() for entry in found):
            return None
        start = len(folder.removeprefix("file://"))
        return {entry.path[start:] for entry in found if entry.is_file()}
    return {path[len(folder) :] for path in Storage().list_files(folder + "/")}


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)
