"""Converts Spark's exceptions to one-line errors of this package.

Classic Spark and Spark Connect both raise `PySparkException` with an error condition. Other facts, such as a missing
file, are in the text of the Java exceptions that caused it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from pyspark.errors import PySparkException

from ducklake_lab.errors import (
    ConstraintError,
    DataFileError,
    DuckLakeError,
    SparkError,
    SqlError,
    TransactionError,
    UnsupportedFeatureError,
    marker,
)

#: Conditions for values that do not fit -> text of the error.
_VALUES = {
    "CAST_OVERFLOW": "A value does not fit its type",
    "CAST_OVERFLOW_IN_TABLE_INSERT": "A value does not fit its type",
    "CAST_INVALID_INPUT": "A value cannot be cast",
    "CONVERSION_INVALID_INPUT": "A value cannot be converted",
    "CANNOT_PARSE_TIMESTAMP": "A value is no timestamp",
    "ARITHMETIC_OVERFLOW": "A result does not fit its type",
    "BINARY_ARITHMETIC_OVERFLOW": "A result does not fit its type",
    "NUMERIC_VALUE_OUT_OF_RANGE": "A number does not fit its type",
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": "A number does not fit its type",
    "DATETIME_OVERFLOW": "A date or timestamp is out of range",
    "DIVIDE_BY_ZERO": "Division by zero",
    "REMAINDER_BY_ZERO": "Division by zero",
    "INVALID_ARRAY_INDEX": "A list has no element of that number",
    "MAP_KEY_DOES_NOT_EXIST": "A map has no such key",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": "A subquery used as a value returned more than one row",
    "NOT_NULL_ASSERT_VIOLATION": "A value is NULL in a column that is NOT NULL",
    "DUPLICATED_MAP_KEY": "A map has a key twice",
}
#: Integers that DuckDB's HUGEINT has, and Spark's DECIMAL has not.
_LONG_NUMBER = re.compile(r"-?\b\d{39}\b")
#: The message of `raise_error` in a query.
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w{5}|$)", re.MULTILINE)
_MISSING = ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST", "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH")
_FILE = re.compile(r"(?:file:/*|(?=[a-z][a-z0-9+.-]*://)|(?<=[\s:])(?=/))([^\n'\"]+?\.parquet)", re.IGNORECASE)
_GONE = re.compile(r"FileNotFoundException|does not exist|FILE_NOT_EXIST|No such file", re.IGNORECASE)
_OWN = {
    kind.__name__: kind
    for kind in (ConstraintError, DataFileError, SqlError, UnsupportedFeatureError, TransactionError)
}
#: Where Spark calls Python in this process, as `foreachBatch` does.
_CALLED = "raised by the Python Proxy"
_IN_WORKER = re.compile(r"Python worker|PythonException|Cannot run program")
#: The frames and the last line of a Python stack trace.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n((?:[ \t]+[^\n]*\n|\n)+)([^\n]+)")
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in ([^\n]+)')
#: Parts of paths with code that is not the user's.
_LIBRARIES = ("/pyspark/", "pyspark.zip", "site-packages", "/ducklake_lab/", "/lib/python3")
#: Reasons why a Python worker cannot run -> text of the error.
_WORKERS = {
    re.compile(r"No module named '([\w]+)[\w.]*'"): "Spark's Python workers have no package {}; install it there.",
    re.compile(r"worker has different version: ([\d.]+) than that in driver: ([\d.]+)"): (
        "Spark's workers run Python {}, and this process Python {}; name one of the same minor version in PYSPARK_PYTHON."
    ),
    re.compile(r"\[PACKAGE_NOT_INSTALLED\] (\w+ >= [\w.]+) must be installed"): (
        "Spark's Python workers have no {}; install it there."
    ),
    re.compile(r'Cannot run program "([^"]+)"'): "Spark's workers cannot run Python as {}; name it in PYSPARK_PYTHON.",
}
_MARKED = re.compile(rf"ducklake-lab ({'|'.join(_OWN)}): ([^\n]*?)(?: SQLSTATE: \w{{5}})?(?:\n|$)")


def marked(error: DuckLakeError) -> Exception:
    """Marks an error for its way from a worker: Spark passes only its text, from which the driver restores it."""
    return ValueError(marker(error))


@contextmanager
def marking() -> Iterator[None]:
    """Marks the errors of a task, so that the driver restores them with their types."""
    try:
        yield
    except DuckLakeError as error:
        raise marked(error) from None


def translate_error(error: BaseException) -> DuckLakeError | None:
    """Returns the error for a Spark exception; None for an exception of another origin.

    Its text is one line, by default the first line of Spark's own.
    """
    if isinstance(error, DuckLakeError):
        return error
    if _is_gone(error):
        return SparkError(
            "Spark's Java process has ended. Restart Python, or the notebook's kernel, to start it again."
        )
    if not _is_spark(error):
        return None
    text = _text(error)
    own = _MARKED.search(text)
    if own is not None:
        return _OWN[own[1]](own[2].strip())
    file = _failed_file(error, text)
    if file is not None:
        return file
    if (raised := _RAISED.search(text)) is not None:
        return ConstraintError(raised[1].strip())
    condition = _condition(error, text)
    if condition.startswith("NUMERIC_") and (number := _LONG_NUMBER.search(text)) is not None:
        return UnsupportedFeatureError(
            f'Spark keeps 38 digits of a number, and {number[0]} has more; run this in process, with engine="duckdb".'
        )
    for name in (condition, condition.partition(".")[0]):
        if name in _VALUES:
            return ConstraintError(_sentence(_VALUES[name], text))
    if condition.startswith(("UNSUPPORTED_", "NOT_SUPPORTED_", "NOT_IMPLEMENTED")):
        return UnsupportedFeatureError(f"Spark does not support this: {_message(text)}")
    if "OutOfMemoryError" in text:
        return SparkError(
            "Spark ran out of memory. Set DUCKLAKE_LAB_DRIVER_MEMORY (now 2g by default) and start again."
        )
    if "cancelled" in text and (
        "SPARK_JOB_CANCELLED" in text or "cancelled part of" in text or "OPERATION_CANCEL" in text
    ):
        return SparkError("The Spark job was cancelled.")
    unfit = worker_fault(error)
    if unfit is not None:
        return SparkError(unfit)
    place = _CALLED if _CALLED in text else "Python worker" if _IN_WORKER.search(text) else ""
    traces = _TRACEBACK.findall(text) if place else None
    if not traces:
        return SparkError(f"Spark failed: {_message(text)}")
    frames, raised = traces[-1]
    line = _own_line(frames)
    if place == _CALLED:
        return SparkError(f"{line or 'A function'} failed, which Spark called: {_message(raised)}")
    failed = f"{line} failed in a Python worker of Spark" if line else "A Python worker of Spark failed"
    return SparkError(f"{failed}: {_message(raised)}")


def _own_line(frames: str) -> str | None:
    """Returns the innermost line of the user's code in a worker's stack trace; None without one."""
    own = [frame for frame in _FRAME.findall(frames) if not any(part in frame[0] for part in _LIBRARIES)]
    return f"Line {own[-1][1]} of {own[-1][2]}" if own else None


def message_of(error: BaseException) -> str:
    """Returns the message of a Spark exception in one line."""
    return _message(_text(error))


def worker_fault(error: BaseException) -> str | None:
    """Returns the reason why a Python worker could not run a function; None for other failures."""
    text = _text(error)
    if _IN_WORKER.search(text):
        for pattern, said in _WORKERS.items():
            match = pattern.search(text)
            if match is not None:
                return said.format(*match.groups())
    return None


def _is_gone(error: BaseException) -> bool:
    """Whether Spark's Java process no longer answers."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_by = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return type(error).__name__ == "Py4JNetworkError" or (
        isinstance(error, ConnectionError) and str(raised_by).startswith("py4j.")
    )


def _is_spark(error: BaseException) -> bool:
    return isinstance(error, PySparkException) or type(error).__module__.startswith(("py4j.", "pyspark."))


def _text(error: BaseException) -> str:
    """Returns the message, followed by those of the Java exceptions below it, if available."""
    parts = [str(error)]
    origin: object = getattr(error, "_origin", None)
    for _ in range(10):
        if origin is None:
            break
        parts.append(str(origin.toString()))  # type: ignore[attr-defined]
        origin = origin.getCause()  # type: ignore[attr-defined]
    return "\n".join(parts)


def _condition(error: BaseException, text: str) -> str:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    # a job's failure wraps the task's error, which has its own condition
    conditions = re.findall(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", text)
    named = [name for name in conditions if name in _VALUES or name.partition(".")[0] in _VALUES]
    return named[0] if named else condition or (conditions[0] if conditions else "")


def _failed_file(error: BaseException, text: str) -> DataFileError | None:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    reading = "FAILED_READ_FILE" in text or condition in _MISSING or "FileNotFoundException" in text
    file = _FILE.search(text) if reading else None
    if file is None:
        return None
    path = _plain_path(file[1])
    if _GONE.search(text):
        return DataFileError(f"The data file {path} does not exist, although the catalog lists it.")
    if "contain any field Ids" in text:
        return DataFileError.without_field_ids(path)
    return DataFileError(f"The data file {path} cannot be read: {_message(text)}")


def _plain_path(shown: str) -> str:
    """Returns a path in the catalog's form; Spark escapes patterns in some messages, and quotes like URLs in others."""
    path = re.sub(r"\\([\\{}\[\]*?])", r"\1", shown)
    # a message with blanks in a path does not quote
    path = path if " " in path else unquote(path)
    return path if "://" in path else "/" + path.lstrip("/")


def _message(text: str) -> str:
    """Returns the message in one line without Spark's condition and SQLSTATE, at most 300 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else "unknown error"
    if first.startswith("An error occurred while calling"):
        # text of py4j; the innermost Java exception has Spark's
        causes = [line for line in lines if line.startswith("Caused by: ")] or lines[1:2]
        first = re.sub(r"^(?:Caused by: |: )?(?:[\w$]+\.)+[\w$]+: ", "", causes[-1]) if causes else first
    first = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", first)
    return re.sub(r"\s*SQLSTATE: \w{5}[.;]?", "", first)[:300]


def _sentence(what: str, text: str) -> str:
    """Returns a sentence for an error, with the value if the message quotes one."""
    match = re.search(r"(?:The value|Cannot parse|input) ('[^'\n]{1,80}'|[-+.\w]{1,80}) (?:of the type|cannot)", text)
    target = re.search(r"(?:to|into) (?:be cast to )?\"([A-Z][^\"\n]{1,60})\"", text)
    detail = f": {match[1]}" if match else ""
    return f"{what}{detail}{f' ({target[1]})' if target else ''}."
