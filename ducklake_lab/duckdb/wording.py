"""DuckDB's errors in one line: types by their names in SQL, the value that does not fit, and the next step.

Other errors keep DuckDB's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: DuckDB's own names of types that SQL calls otherwise.
_TYPES = {
    "BOOL": "BOOLEAN",
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INTEGER",
    "INT64": "BIGINT",
    "INT128": "HUGEINT or UUID",
    "UINT8": "UTINYINT",
    "UINT16": "USMALLINT",
    "UINT32": "UINTEGER",
    "UINT64": "UBIGINT",
    "UINT128": "UHUGEINT",
    "INTEGER_LITERAL": "INTEGER",
    "STRING_LITERAL": "VARCHAR",
}
_TYPE = re.compile(rf"\b(?:{'|'.join(sorted(_TYPES, key=len, reverse=True))})\b")
#: How the parts of a time are written.
_FORMS = {"date": "YYYY-MM-DD", "time": "HH:MM:SS", "timestamp": "YYYY-MM-DD HH:MM:SS"}
#: Window functions, which DuckDB does not find where OVER is missing.
_WINDOW_FUNCTIONS = frozenset(
    "row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value nth_value".split()
)
#: Operators that DuckDB calls otherwise than they are written.
_OPERATORS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE", "~~~": "GLOB"}
#: Signatures of a function that are shown, and characters of a value.
_SHOWN, _WIDTH = 6, 100

_SOURCE = re.compile(r" when casting from source column (.+)$", re.DOTALL)
_NO_MATCH = re.compile(
    r"No function matches the given name and argument types '(.+?)\((.*)\)'\. You might need.*", re.DOTALL
)
_CANDIDATE = re.compile(r"^\s+\"?(\S+?)\"?\((.*?)(?:, /)?\) -> \S", re.MULTILINE)
#: Names of parameters, which DuckDB 2.0 shows before their types.
_PARAMETER = re.compile(r"(^|, )\*?\"?[a-z_]\w*\"? (?=[A-Z])")
_AMBIGUOUS = re.compile(
    r'Could not choose a best candidate function for the function call "(.+?)\((.*)\)"\..*', re.DOTALL
)
_MISSING = re.compile(r"Scalar Function with name (\w+) does not exist!.*", re.DOTALL)


#: The line that DuckDB shows of a statement, with a mark below the place; it leaves out parts of a long line.
_SHOWN_LINE = re.compile(r"\n\nLINE (\d+): (.*)\n( *)\^")
_NEAR = re.compile(r'syntax error at or near "(.+?)"(?:\n|$)', re.DOTALL)
#: Macros that call `list_aggr`.
_OF_LISTS = frozenset(
    f"list_{name}"
    for name in (
        "any_value approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or count entropy first histogram kurtosis "
        "kurtosis_pop last mad max median min mode product sem skewness stddev_pop stddev_samp string_agg sum var_pop var_samp"
    ).split()
)
_AGGREGATES = ("list_aggr", "list_aggregate", "array_aggr", "array_aggregate", "aggregate")
#: Names that `as_written` looks for: those macros, and their functions.
_LIST_FUNCTION = re.compile(rf"\b({'|'.join(sorted({*_OF_LISTS, *_AGGREGATES}))})\s*\(", re.IGNORECASE)
_NO_LIST = re.compile(r"list_aggr takes .*, not \((.*), VARCHAR\); .*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ErrorPosition:
    """Position where a statement cannot be parsed: a word, with its 1-based line and column."""

    word: str
    line: int
    column: int


def position_of_error(error: Exception | str, sql: str) -> ErrorPosition | None:
    """The place that a parser's error means in the text it is about; None where that is not certain."""
    text = str(error)
    near, shown = _NEAR.search(text), _SHOWN_LINE.search(text)
    lines = sql.split("\n")
    if near is None or shown is None or int(shown[1]) > len(lines):
        return None
    line = lines[int(shown[1]) - 1]
    places = [one.start() for one in re.finditer(_whole(near[1]), line)]
    part, at = shown[2].removeprefix("...").removesuffix("..."), len(shown[3]) - len(f"LINE {shown[1]}: ")
    marked = line.find(part) + at - 3 * shown[2].startswith("...")
    if marked in places or len(places) == 1:
        return ErrorPosition(near[1], int(shown[1]), (marked if marked in places else places[0]) + 1)
    return None


def _whole(word: str) -> str:
    """A pattern of a word that is no part of another."""
    return rf"(?<!\w){re.escape(word)}(?!\w)" if word.isidentifier() else re.escape(word)


def as_written(message: str, sql: str) -> str:
    """The message with the function that was written, where DuckDB names another that it stands for.

    `list_sum(x)` is a macro that calls `list_aggr(x, 'sum')`.
    """
    refusal = _NO_LIST.fullmatch(message)
    names = list(dict.fromkeys(name.lower() for name in _LIST_FUNCTION.findall(sql)))
    if refusal is None or not names or not set(names) <= _OF_LISTS:
        return message
    return f"{' or '.join(names)} takes a list, not {refusal[1]}; cast its argument."


def worded(error: Exception | str, columns: Sequence[str] = ()) -> str:
    """Reword an error of DuckDB in one line.

    Args:
        columns: names for `c0`, `c1`, … or `_ducklake_0`, … if the statement's columns have such names;
            "" for other expressions.
    """
    text = str(error).strip().split("\n\nLINE ")[0]
    head, mark, rest = text.partition("Error: ")
    text = rest if mark and "\n" not in head else text
    source = _SOURCE.search(text)
    text = text[: source.start()] if source is not None else text
    text, is_castable = _reworded(text)
    text = " ".join(line.strip() for line in text.splitlines() if line.strip())
    if source is None:
        return text
    if is_castable:
        text += " TRY_CAST gives NULL instead."
    name = source[1]
    if (place := re.fullmatch(r"(?:c|_ducklake_)(\d+)", name)) is not None and int(place[1]) < len(columns):
        name = columns[int(place[1])]
    # an argument of an expression that a worker evaluates may be no column
    return f"Column {name}: {text}" if name and not name.startswith("_ducklake_") else text


_BACKUP = "restore it from a backup"
_DAMAGED = (
    "don't know what type|TProtocolException|thrift|decompress|snappy|corrupt|end of stream|out of buffer|page header"
)
_OF_FILES = [
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (
            "Permission denied|not permitted|Access is denied",
            "cannot be read: permission denied; let this user read it",
        ),
        ("no regular file, but", f"is no regular file, but a pipe or a device; {_BACKUP}"),
        ("Is a directory|not a regular file", f"is a folder, and no file; {_BACKUP}"),
        ("No files found|No such file|does not exist|not found: HTTP", f"is missing; {_BACKUP}"),
        (
            "magic bytes|too small to be|file size is \\d+ bytes",
            f"is no Parquet file, or its end is missing; {_BACKUP}",
        ),
        (
            "AES tag|right key|decrypt|is encrypted|encryption_config",
            f"does not open with the key in the catalog: the key or the file was changed; {_BACKUP}",
        ),
        (f"{_DAMAGED}|read enough bytes|Unexpected end|Couldn't deserialize", f"is damaged; {_BACKUP}"),
    )
]


def worded_of_file(error: Exception | str, path: str, kind: str, *, encrypted: bool = False) -> str:
    """Reword the error of an unreadable file in one line, with the next step.

    Args:
        kind: of the file: `data file`.
        encrypted: whether DuckDB decrypts the file; a wrong key makes a wrong length.
    """
    text = str(error).removeprefix(f"The file {path} cannot be read: ")
    if encrypted and "read enough bytes" in text:
        text = "AES tag"
    said = next((said for pattern, said in _OF_FILES if pattern.search(text)), None)
    if said is None:
        said = f"cannot be read: {worded(text).rstrip('.')}"
    elif kind == "data file" and said.startswith("is missing"):
        said += ", or DELETE its rows from the lake"
    return f"The {kind} {path} {said}."


def is_of_damage(error: Exception | str) -> bool:
    """Returns whether an error that names no file is one of damaged Parquet."""
    return re.search(_DAMAGED, str(error), re.IGNORECASE) is not None


def _reworded(text: str) -> tuple[str, bool]:
    """The text by the rules, and whether TRY_CAST would give NULL rather than fail."""
    for pattern, said in _RULES:
        match = pattern.fullmatch(text)
        if match is not None:
            return said(match, text), said in (_unfit, _unfit_time)
    return text, False


def _types(text: str) -> str:
    return _TYPE.sub(lambda match: _TYPES[match[0]], text)


def _value(match: re.Match[str]) -> str:
    text = match["value"]
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _unfit(match: re.Match[str], _text: str) -> str:
    return f"'{_value(match)}' is no {_types(match['type'])}."


def _unfit_time(match: re.Match[str], _text: str) -> str:
    kind = match["kind"]
    return f"'{_value(match)}' is no {kind.upper()} ({_FORMS[kind]})."


def _too_large(match: re.Match[str], _text: str) -> str:
    return f"{_value(match)} does not fit {_types(match['type'])}."


def _overflow(match: re.Match[str], _text: str) -> str:
    return f"{match['value']} is out of the range of {_types(match['type'])}; cast to a larger type first."


def _no_cast(match: re.Match[str], _text: str) -> str:
    return f"{match['from']} cannot be cast to {match['type']}."


def _twice(_found: re.Match[str], _text: str) -> str:
    return "Map keys must be unique."


def _no_function(match: re.Match[str], text: str) -> str:
    """A function, or an operator, that takes no arguments of these types."""
    name, given = match[1], _parts(_types(match[2]))
    if not name.isidentifier():
        shown = f" {_OPERATORS.get(name, name)} ".join(given) if len(given) > 1 else f"{name}{''.join(given)}"
        return f"There is no {shown}; cast one of the values."
    candidates = [_parts(_PARAMETER.sub(r"\1", some)) for called, some in _CANDIDATE.findall(text) if called == name]
    if not any(candidates):
        return f"{name} takes no argument."
    alone = all(len(one) == 1 for one in candidates)
    wanted = _either(list(dict.fromkeys(one[0] if alone else f"({', '.join(one)})" for one in candidates)))
    if not given:
        return f"{name} takes {wanted}, and is given no argument."
    shown = given[0] if alone and len(given) == 1 else f"({', '.join(given)})"
    counts = any(len(one) == len(given) or (_has_more(one) and len(given) >= len(one) - 1) for one in candidates)
    hint = f"cast {'an' if len(given) > 1 else 'its'} argument" if counts else "its arguments are too few or too many"
    return f"{name} takes {wanted}, not {shown}; {hint}."


def _has_more(parameters: Sequence[str]) -> bool:
    """Returns whether a function takes any number of further arguments."""
    return bool(parameters) and "..." in parameters[-1]


def _parts(types: str) -> list[str]:
    """The types of a list; those in parentheses are parts of one, as in `STRUCT(a INTEGER, b INTEGER)`."""
    parts, depth = [""], 0
    for letter in types:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip().replace('"NULL"', "NULL") for part in parts if part.strip()]


def _either(shown: Sequence[str]) -> str:
    """`A`, `A or B`, `A, B or C`, and no more than are read."""
    if len(shown) > _SHOWN:
        return ", ".join([*shown[:_SHOWN], "…"])
    return " or ".join(part for part in (", ".join(shown[:-1]), *shown[-1:]) if part)


def _ambiguous(match: re.Match[str], _text: str) -> str:
    given = _parts(_types(match[2]))
    argument = "its argument" if len(given) == 1 else "its arguments"
    return f"{match[1]}({', '.join(given)}) may mean several functions; cast {argument}."


def _no_window(match: re.Match[str], text: str) -> str:
    name = match[1]
    return f"{name} is a window function; write {name}(…) OVER (…)." if name in _WINDOW_FUNCTIONS else text


_VALUE = r"(?P<value>.*)"
_RULES: list[tuple[re.Pattern[str], Callable[[re.Match[str], str], str]]] = [
    (re.compile(pattern, re.DOTALL), said)
    for pattern, said in (
        (rf"Could not convert string (['\"]){_VALUE}\1 to (?P<type>.+)", _unfit),
        (rf"Type VARCHAR with value '{_VALUE}' can't be cast to the destination type (?P<type>.+)", _unfit),
        (rf"invalid (?P<kind>date|time|timestamp) field format: \"{_VALUE}\", expected format is .*", _unfit_time),
        (
            rf"(?P<kind>date|time|timestamp) field value out of range: \"{_VALUE}\"(?:, expected format is .*)?",
            _unfit_time,
        ),
        (rf"Could not cast value {_VALUE} to (?P<type>.+)", _too_large),
        (rf"Casting value \"{_VALUE}\" to type (?P<type>.+) failed: value is out of range!", _too_large),
        (
            rf"Type \S+ with value {_VALUE} can't be cast because the value is out of range for the destination type "
            r"(?P<type>.+)",
            _too_large,
        ),
        (rf"Overflow in \w+ of (?P<type>\S+) \({_VALUE}\)!", _overflow),
        (r"Unimplemented type for cast \((?P<from>.+) -> (?P<type>.+)\)", _no_cast),
        (r"Arrow map contains duplicate key, .*", _twice),
    )
] + [(_NO_MATCH, _no_function), (_AMBIGUOUS, _ambiguous), (_MISSING, _no_window)]
