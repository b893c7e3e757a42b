"""CSV files as text: encoding, lines, and the values of single lines."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain, count, islice
from pathlib import Path
from typing import IO

import pyarrow as pa

from ducklake_lab.errors import DataFileError, UsageError, did_you_mean
from ducklake_lab.session.uploads.form import Form

_CHUNK = 1 << 20
_STARTS = 1000
_ENCODINGS = (
    "utf-8", "utf-16", "latin-1", "cp1252", "shift_jis", "utf-32", "cp1250", "cp1251", "cp850", "cp437", "iso-8859-2",
    "iso-8859-15", "koi8-r", "gb18030", "gbk", "big5", "euc_jp", "euc_kr", "mac_roman", "ascii",
)  # fmt: skip
_BLANK = re.compile("\n{2,}")
#: Bytes that are characters in cp1252, but control characters, rare in text, in Latin-1.
_WINDOWS = bytes(range(0x80, 0xA0))
_UNUSED_BY_WINDOWS = b"\x81\x8d\x8f\x90\x9d"


@dataclass(frozen=True, slots=True)
class Text:
    r"""A CSV file.

    Attributes:
        name: the readable name.
        path: the path of its UTF-8 form for DuckDB.
        lines: the number of lines, with a last line that has no line end.
        blank: the number of empty lines, without skipped ones.
        ends: the line ends that occur: `\n`, `\r\n` and `\r`.
    """

    name: str
    path: str
    lines: int
    blank: int
    ends: frozenset[str]


def text_of(name: str, path: str, form: Form, folder: Path, number: int) -> Text:
    """Reads a file once: counts its lines, and copies it if DuckDB cannot read it directly.

    Args:
        name: the name in messages.
        folder: a folder for a copy.
        number: the file's number, for the name of a copy.

    Raises:
        DataFileError: the file is damaged, or has another encoding.
        UsageError: the encoding does not exist, or no lines are left.
    """
    copied = form.encoding is not None and codecs.lookup(_encoding(form.encoding)).name != "utf-8"
    target = path
    survey = _Survey()
    if copied:
        target = str(folder / f"{number}.csv")
        with open(target, "w", encoding="utf-8", newline="") as file:
            for part in _decoded(name, path, form.encoding or "utf-8"):
                survey.add(part)
                file.write(part)
    else:
        for part in _decoded(name, path, "utf-8"):
            survey.add(part)
    survey.finish()
    blank = survey.blank
    if form.skip:
        left_out = list(islice(lines_of(target), form.skip))
        if len(left_out) < form.skip or form.skip == survey.lines:
            raise UsageError(f"{name} has {survey.lines:,} lines; --skip {form.skip} leaves nothing of it.")
        blank -= sum(not line.strip("\r\n") for line in left_out)
        if form.quote and any(form.quote in line for line in left_out):
            # DuckDB would search for the end of a quoted value beyond the skipped lines
            target = _without(target, left_out, folder / f"{number}-without.csv")
    return Text(name, target, survey.lines, blank, frozenset(survey.ends))


def lines_of(path: str) -> Iterator[str]:
    """Yields the lines of a UTF-8 file with their line ends, decompressed."""
    with _opened(path) as stream, TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        yield from text


def _without(path: str, left_out: list[str], target: Path) -> str:
    """Writes a copy with empty first lines, so that all lines keep their numbers; returns its path."""
    with target.open("w", encoding="utf-8", newline="") as file:
        rest = islice(lines_of(path), len(left_out), None)
        file.writelines(chain((re.sub(r"[^\r\n]", "", line) for line in left_out), rest))
    return str(target)


class _Survey:
    """Counts the lines of a text that arrives in parts."""

    def __init__(self) -> None:
        self.lines = self.blank = 0
        self.ends: set[str] = set()
        self._last = "\n"
        self._held = ""

    def add(self, part: str) -> None:
        part = self._held + part
        # it may be half of a line end
        self._held = "\r" if part.endswith("\r") else ""
        self._count(part[:-1] if self._held else part)

    def finish(self) -> None:
        self._count(self._held)
        self.lines += self._last != "\n"

    def _count(self, part: str) -> None:
        if not part:
            return
        if "\r" in part:
            both, single = part.count("\r\n"), part.count("\r")
            self.ends |= {end for end, occurrences in (("\r\n", both), ("\r", single - both)) if occurrences}
            if part.count("\n") > both:
                self.ends.add("\n")
            part = part.replace("\r\n", "\n").replace("\r", "\n")
        elif "\n" in part:
            self.ends.add("\n")
        self.lines += part.count("\n")
        joined = self._last + part
        if "\n\n" in joined:
            self.blank += sum(len(run[0]) - 1 for run in _BLANK.finditer(joined))
        self._last = part[-1]


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    lower = path.lower()
    if lower.endswith(".gz"):
        with gzip.open(path, "rb") as stream:
            yield stream  # type: ignore[misc]
    elif lower.endswith(".zst"):
        with pa.CompressedInputStream(path, "zstd") as stream:
            yield stream
    else:
        with open(path, "rb") as stream:
            yield stream


def _decoded(name: str, path: str, encoding: str) -> Iterator[str]:
    """Yields the text of a file in parts, without the byte order mark.

    Raises:
        DataFileError: the file is damaged, or has another encoding.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig" if _encoding(encoding) == "utf-8" else encoding)()
    lines, start = 1, b""
    try:
        with _opened(path) as stream:
            while chunk := stream.read(_CHUNK):
                start = start or chunk
                if encoding == "utf-8" and start is chunk and chunk[:4096].count(0) * 4 > len(chunk[:4096]):
                    raise _in_another(name, 1, chunk, encoding)
                try:
                    part = decoder.decode(chunk)
                except UnicodeDecodeError as error:
                    before = bytes(error.object[: error.start])
                    raise _in_another(name, lines + before.count(b"\n"), start, encoding, error.object) from None
                lines += part.count("\n")
                yield part
            try:
                yield decoder.decode(b"", final=True)
            except UnicodeDecodeError as error:
                raise _in_another(name, lines, start, encoding, error.object) from None
    except (OSError, EOFError) as error:
        raise DataFileError(f"{name} cannot be read: {str(error) or type(error).__name__}.") from None


def _in_another(name: str, line: int, start: bytes, encoding: str, around: bytes = b"") -> DataFileError:
    """Returns the error for a wrong encoding, with the likely one."""
    likely = _likely(start, around)
    shown = "UTF-8" if encoding == "utf-8" else encoding
    do = f"it looks like {likely}: add --encoding {likely}, or name another" if likely else "name its own by --encoding"
    return DataFileError(f"Line {line:,} of {name} is not {shown}; {do}.")


def _likely(start: bytes, around: bytes) -> str | None:
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if 0 in start[:4096]:
        return "utf-16-le" if start[1:4096:2].count(0) >= start[:4096:2].count(0) else "utf-16-be"
    # the bytes around it count, too
    seen = set(start) | set(around)
    if not seen & set(_WINDOWS):
        return "latin-1"
    return "cp1252" if not seen & set(_UNUSED_BY_WINDOWS) else None


def _encoding(name: str) -> str:
    """Returns Python's name of a text encoding.

    Raises:
        UsageError: the encoding does not exist.
    """
    try:
        codec = codecs.lookup(name)
        if isinstance(codec.incrementaldecoder().decode(b""), str):
            return codec.name
    except (LookupError, TypeError, ValueError):
        pass  # unknown, or not a text encoding
    raise UsageError(
        f'There is no encoding "{name}"; use one of Python\'s, such as {", ".join(_ENCODINGS[:5])}.{did_you_mean(name, _ENCODINGS)}'
    )


def records(lines: Iterable[str], delimiter: str, form: Form) -> Iterator[tuple[int, list[str]]]:
    """Yields the values of each record, with the 1-based number of its first line; no values for an empty line."""
    record = _Record(delimiter, form.quote, form.escape)
    first = 1
    for number, line in zip(count(1), lines, strict=False):
        if not record.open:
            first = number
        if record.add(line):
            yield first, record.take()
    if record.open:
        yield first, record.take()


class _Record:
    """A record that is read line by line, because quoted values may have several lines."""

    def __init__(self, delimiter: str, quote: str, escape: str) -> None:
        self._delimiter, self._quote, self._escape = delimiter, quote, escape
        self._values: list[str] = []
        # the parts of an unfinished quoted value
        self._parts: list[str] | None = None

    @property
    def open(self) -> bool:
        return bool(self._values) or self._parts is not None

    def take(self) -> list[str]:
        if self._parts is not None:
            self._values.append("".join(self._parts))
        values, self._values, self._parts = self._values, [], None
        return values

    def add(self, line: str) -> bool:
        """Adds a line; returns whether the record ends with it."""
        end = len(line.rstrip("\r\n"))
        if not end and not self.open:
            return True
        if self._parts is None and (not self._quote or self._quote not in line):
            self._values += line[:end].split(self._delimiter) if self._delimiter else [line[:end]]
            return True
        at = 0
        while True:
            value = None
            if self._parts is None:
                start = at
                while line[start : start + 1] == " ":
                    start += 1
                if self._quote and line[start : start + 1] == self._quote:
                    self._parts, at = [], start + 1
            if self._parts is not None:
                at = self._quoted(line, at)
                if at < 0:
                    return False
                value, self._parts = "".join(self._parts), None
            stop = line.find(self._delimiter, at, end) if self._delimiter else -1
            rest = line[at : stop if stop >= 0 else end]
            self._values.append(rest if value is None else value + rest.rstrip(" "))
            if stop < 0:
                return True
            at = stop + len(self._delimiter)

    def _quoted(self, line: str, at: int) -> int:
        """Adds the text within quotes from a position; returns the position after it, or -1 if it goes on."""
        assert self._parts is not None
        while True:
            places = (line.find(mark, at) for mark in {self._quote, self._escape} if mark)
            stop = min((place for place in places if place >= 0), default=-1)
            if stop < 0:
                self._parts.append(line[at:])
                return -1
            self._parts.append(line[at:stop])
            after = line[stop + 1 : stop + 2]
            if line[stop] == self._escape and after in {self._quote, self._escape} - {""}:
                self._parts.append(after)
                at = stop + 2
            elif line[stop] == self._quote:
                return stop + 1
            else:
                self._parts.append(line[stop])
                at = stop + 1


def line_of_row(path: str, delimiter: str, form: Form, row: int, *, skip: int, one_column: bool) -> int:
    """Returns the line in which a row of a file begins.

    Args:
        row: the 1-based row; skipped lines and the header are no rows.
        skip: number of lines before the first row, with the header.
        one_column: whether empty lines are rows.
    """
    starts = (
        first for first, values in records(islice(lines_of(path), skip, None), delimiter, form) if one_column or values
    )
    return skip + next(islice(starts, row - 1, None), 0)


def start_of(path: str, skip: int) -> list[str]:
    """Returns the first lines of a file after the skipped ones: 1,000 lines or about 1 MB."""
    lines: list[str] = []
    size = 0
    for line in islice(lines_of(path), skip, skip + _STARTS):
        lines.append(line)
        size += len(line)
        if size > _CHUNK:
            break
    return lines


def breaks_in(value: str) -> tuple[int, int]:
    """Returns the number of line ends in a value, and the number of empty lines between them."""
    plain = value.replace("\r\n", "\n").replace("\r", "\n")
    return plain.count("\n"), sum(len(run[0]) - 1 for run in _BLANK.finditer(plain))
