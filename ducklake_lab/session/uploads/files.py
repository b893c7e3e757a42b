"""Files for upload, found by a path, pattern, folder or URL, and the functions that read them."""

from __future__ import annotations

import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from ducklake_lab.errors import DataFileError, UsageError, did_you_mean
from ducklake_lab.storage import Storage

#: DuckDB's reader functions, by ending; None for Excel files, which openpyxl reads.
_READERS: dict[str, str | None] = {
    ".csv": "read_csv", ".tsv": "read_csv", ".txt": "read_csv", ".parquet": "read_parquet",
    ".json": "read_json", ".jsonl": "read_json", ".ndjson": "read_json", ".xlsx": None,
}  # fmt: skip
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class File:
    """A file to upload.

    Attributes:
        name: the readable name, without secrets of a URL.
        path: its local path.
    """

    name: str
    path: str


def can_upload(name: str) -> bool:
    """Returns whether the ending of a name can be uploaded."""
    return _ending(name) in _READERS


def files_of(source: str, folder: Path) -> list[File]:
    """Returns the files that a path, pattern, folder or URL names, as local files.

    Args:
        folder: a folder for copies of remote files.

    Raises:
        UsageError: there are no files, or they differ in kind.
        DataFileError: a file cannot be read.
    """
    if re.match(r"https?://", source):
        return [File(shown_source(source), _downloaded(source, folder))]
    scheme, mark, _ = source.partition("://")
    if mark and scheme != "file":
        return [File(shown_source(url), _fetched(url, folder, number)) for number, url in enumerate(_remote(source))]
    return [File(path, path) for path in _paths_of(source.removeprefix("file://"))]


def _remote(source: str) -> list[str]:
    """Returns the URLs that match a URL, which may be a pattern."""
    if not any(mark in source for mark in "*?["):
        return [source]
    base = re.split(r"[*?\[]", source, maxsplit=1)[0].rpartition("/")[0]
    depth = source.count("/")
    urls = [url for url in Storage().list_files(base) if url.count("/") == depth and fnmatchcase(url, source)]
    if not urls:
        raise UsageError(f"No file matches {shown_source(source)}.")
    return urls


def _fetched(url: str, folder: Path, number: int) -> str:
    # partition folders hold values that the files lack
    named = [part for part in PurePosixPath(urllib.parse.urlsplit(url).path).parts[:-1] if "=" in part]
    target = folder.joinpath(str(number), *named, PurePosixPath(url).name)
    target.parent.mkdir(parents=True)
    with Storage().open_input(url) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)
    return str(target)


def _paths_of(source: str) -> list[str]:
    """Returns the files that a path, pattern or folder names.

    Raises:
        UsageError: there are no files, or they differ in kind.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and can_upload(file.name))
        files = [
            file for file in files if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        ]
        if len({_READERS[_ending(file.name)] for file in files}) > 1:
            kinds = Counter(_ending(file.name) for file in files)
            shown = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
            raise UsageError(f"{source} holds files of several kinds ({shown}); give a pattern such as {source}/*.csv.")
        if not files:
            raise UsageError(f"{source} holds no file that can be uploaded: {', '.join(_READERS)}.")
        return [str(file) for file in files]
    if path.is_file():
        return [str(path)]
    if any(mark in source for mark in "*?["):
        anchor = Path(path.anchor) if path.is_absolute() else Path()
        files = sorted(anchor.glob(str(path.relative_to(path.anchor) if path.is_absolute() else path)))
        if files:
            return [str(file) for file in files if file.is_file()]
        raise UsageError(f"No file matches {source}.")
    beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    raise UsageError(f"There is no file {source}.{did_you_mean(path.name, beside)}")


def reader_of(source: str, files: Sequence[File]) -> str | None:
    """Returns DuckDB's function that reads the files; None for Excel files.

    Raises:
        UsageError: the files differ in kind, their kind is unknown, or one is empty.
    """
    endings = {_ending(file.path) for file in files}
    unknown = sorted(endings - set(_READERS))
    if unknown:
        raise UsageError(
            f'{shown_source(source)} is no file that can be uploaded: its name ends in "{unknown[0]}", '
            f"and not in one of {', '.join(_READERS)}."
        )
    empty = next((file.name for file in files if not Path(file.path).stat().st_size), None)
    if empty is not None:
        raise UsageError(f"{empty} is empty.")
    if len({_READERS[ending] for ending in endings}) > 1:
        raise UsageError(f"{shown_source(source)} matches files of several kinds: {', '.join(sorted(endings))}.")
    return _READERS[endings.pop()]


def _ending(path: str) -> str:
    """Returns the ending of a file's name without that of a compression."""
    name = PurePosixPath(urllib.parse.urlsplit(path).path if "://" in path else path.replace("\\", "/")).name.lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    return PurePosixPath(name).suffix


def stem(path: str) -> str:
    name = PurePosixPath(path.replace("\\", "/").rstrip("/")).name
    return re.sub(r"\..*", "", name) or "uploaded"


def shown_source(source: str) -> str:
    """Returns a source without the parts of a URL that may be secret."""
    if "://" not in source:
        return source
    parts = urllib.parse.urlsplit(source)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _downloaded(url: str, folder: Path) -> str:
    """Downloads a URL; returns the path of the copy.

    Raises:
        DataFileError: the download failed.
    """
    target = folder / (PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(url).path)).name or "uploaded")
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, target.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
        raise DataFileError(f"{shown_source(url)} cannot be read: {reason}.") from None
    return str(target)
