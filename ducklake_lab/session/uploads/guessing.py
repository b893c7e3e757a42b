"""Guesses types that fit all texts of a column without loss. DuckDB reads every text; none is sampled."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.session.uploads.form import Form

#: Runs a query and returns its rows.
Ask = Callable[[str], list[tuple[Any, ...]]]

#: Texts that often mean NULL in files.
_NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "nan", "-", "?", "#N/A")
_FIRST = 1000
#: Digits that a DOUBLE always keeps.
_DOUBLE_DIGITS = 15
_MOST_DIGITS = 38
_EXAMPLES = 3
#: Texts that DuckDB casts to DATE and similar types; a longer fraction would be cut.
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,FRACTION}0*)?)?"
_DAY = r"[0-9]{4,6}[-/][0-9]{1,2}[-/][0-9]{1,2}( \(BC\))?"
_ISO_TIME = _CLOCK.replace("FRACTION", "6")
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_TIMES = {
    "TIME": _ISO_TIME,
    "DATE": f"{_DAY}|-?infinity",
    "TIMESTAMP": f"{_DAY}[ T]{_ISO_TIME}",
    "TIMESTAMP_NS": f"{_DAY}[ T]{_CLOCK.replace('FRACTION', '9')}",
    "TIMESTAMP WITH TIME ZONE": f"{_DAY}[ T]{_ISO_TIME} ?{_ZONE}",
}
#: Shapes of other dates, with 9 for each digit: the separator, whether the year is first, and the time of day.
_SHAPE = re.compile(
    r"(?:9{1,2}([/.-])9{1,2}\1(9{2}|9{4})|(9{4})([/.-])9{1,2}\4(?:9{1,2}))( 9{1,2}:99(?::99)?( [APap][Mm])?)?"
)


@dataclass(frozen=True, slots=True)
class Guess:
    """The guessed type of a text column.

    Attributes:
        type: the SQL type.
        format: a `strptime` format for dates that a cast cannot read.
        note: the reason for the type.
        filled: whether any value is not NULL.
        gaps: whether any value is NULL.
    """

    type: str
    format: str | None = None
    note: str = ""
    filled: bool = True
    gaps: bool = False

    @property
    def family(self) -> str:
        """The group of the type: `number`, `time`, `BOOLEAN` or `VARCHAR`."""
        if self.type.startswith(("BIGINT", "DOUBLE", "DECIMAL")):
            return "number"
        return "time" if self.type in _TIMES else self.type


def number_text(value: str, form: Form) -> str:
    """Returns SQL for a number's text in the form of a cast; NULL for other text.

    Args:
        value: SQL of the text.
    """
    plain = f"trim({value})"
    whole = "[0-9]+" if form.thousands is None else f"([0-9]{{1,3}}({re.escape(form.thousands)}[0-9]{{3}})+|[0-9]+)"
    point = re.escape(form.decimal)
    pattern = f"[+-]?({whole}({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?"
    read = plain
    if form.thousands is not None:
        read = f"replace({read}, {quote_text(form.thousands)}, '')"
    if form.decimal != ".":
        read = f"replace({read}, {quote_text(form.decimal)}, '.')"
    return f"CASE WHEN regexp_full_match({plain}, {quote_text(pattern)}) THEN {read} END"


def digits_of(number: str) -> str:
    """Returns SQL for the significant digits of a number's text: no outer zeros, sign or exponent."""
    return f"trim(regexp_replace(regexp_replace({number}, '[eE].*$', ''), '[^0-9]', '', 'g'), '0')"


def guess(ask: Ask, relation: str, columns: Sequence[str], form: Form) -> list[Guess]:
    """Guesses the type of each column of a text relation.

    Args:
        relation: SQL after FROM.
    """
    return _Guessing(ask, relation, columns, form).all()


def guess_numbers(ask: Ask, relation: str, columns: Sequence[str]) -> dict[str, Guess]:
    """Guesses the types of columns with texts of numbers."""
    return _Guessing(ask, relation, columns, Form()).numbers(columns)


class _Guessing:
    def __init__(self, ask: Ask, relation: str, columns: Sequence[str], form: Form) -> None:
        self._ask, self._relation, self._columns, self._form = ask, relation, columns, form

    def all(self) -> list[Guess]:
        first = self._kinds(f"(FROM {self._relation} LIMIT {_FIRST})", self._columns)
        open_ = [name for name in self._columns if first[name].may_be]
        # a column that begins with a number is numeric or text
        plain = [name for name in open_ if first[name].number and not self._form.dates]
        counted = self._kinds(self._relation, plain, only_numbers=True)
        counted |= self._kinds(self._relation, [name for name in open_ if name not in plain])
        guesses: dict[str, Guess] = {}
        numbers = [name for name in open_ if counted[name].filled and counted[name].number]
        guesses |= self.numbers(numbers)
        shaped = [name for name in open_ if name not in guesses or self._form.dates]
        guesses |= self._dates(shaped, counted)
        rest = [name for name in self._columns if name not in guesses]
        notes = self._nearly(rest)
        result = []
        for name in self._columns:
            shape = counted.get(name) or first[name]
            one = guesses.get(name) or Guess("VARCHAR", note=notes.get(name, ""))
            result.append(Guess(one.type, one.format, one.note, filled=shape.filled > 0, gaps=shape.gaps))
        return result

    def _each(self, relation: str, columns: Iterable[str]) -> str:
        """Returns SQL of the values of some columns in one column, with the column's number."""
        values = ", ".join(f"{{i: {at}, v: {quote_identifier(name)}}}" for at, name in enumerate(columns))
        return f"(SELECT x.i AS i, trim(x.v) AS v FROM (SELECT unnest([{values}]) AS x FROM {relation}))"

    def _kinds(self, relation: str, columns: Sequence[str], *, only_numbers: bool = False) -> dict[str, _Kinds]:
        if not columns:
            return {}
        number = number_text("v", self._form)
        # a plus marks phone numbers, a leading zero codes
        is_number = f"((({number}) IS NOT NULL AND NOT regexp_matches(v, '^([+]|-?0[0-9])')) OR lower(v) = 'nan')"
        like_date = "regexp_matches(v, '^[0-9]+[-/.][0-9]+[-/.][0-9]+')"
        shape = "regexp_replace(regexp_replace(v, '[0-9]', '9', 'g'), '[.]9{7,}', '.9999999')"
        asked = ["count(v)", "count(*)", f"bool_and({is_number}) AND NOT bool_and(lower(v) = 'nan')"]
        if not only_numbers:
            # DuckDB casts t, yes and the like to booleans too, but they may be ordinary words
            asked.append("bool_and(lower(v) IN ('true', 'false'))")
            asked += [
                f"bool_and(CASE WHEN v IS NULL THEN NULL WHEN regexp_full_match(v, {quote_text(texts)}) "
                f"THEN try_cast(v AS {kind}) IS NOT NULL ELSE false END)"
                for kind, texts in _TIMES.items()
            ]
            asked += [f"list(DISTINCT {shape}) FILTER ({like_date})", f"count(*) FILTER ({like_date})"]
        rows = self._ask(f"SELECT i, {', '.join(asked)} FROM {self._each(relation, columns)} GROUP BY i")
        empty = _Kinds(filled=0, rows=0, number=False, boolean=False, times=(), shapes=(), shaped=0)
        by_column = dict.fromkeys(columns, empty)
        for at, filled, count, fits, *others in rows:
            none: tuple[Any, ...] = (False, *(False for _ in _TIMES), None, 0)
            boolean, *times, shapes, shaped = others or none
            kinds = tuple(kind for kind, is_so in zip(_TIMES, times, strict=True) if is_so)
            by_column[columns[at]] = _Kinds(
                filled, count, bool(fits), bool(boolean), kinds, tuple(sorted(shapes or ())), shaped
            )
        return by_column

    def numbers(self, columns: Sequence[str]) -> dict[str, Guess]:
        """Returns BIGINT, DOUBLE or a DECIMAL that keeps all digits; text if none does."""
        if not columns:
            return {}
        number = number_text("v", self._form)
        double = "try_cast(n AS DOUBLE)"
        kept = f"{digits_of('n')} = {digits_of(f'{double}::VARCHAR')} AND NOT isinf({double})"
        asked = [
            "bool_and(n IS NOT NULL AND regexp_full_match(n, '-?[0-9]+'))",
            "bool_and(n IS NULL OR try_cast(n AS BIGINT) IS NOT NULL)",
            "bool_or(n IS NULL OR regexp_matches(n, '[eE]'))",
            r"max(length(ltrim(regexp_extract(n, '^[+-]?([0-9]*)', 1), '0')))",
            r"max(length(rtrim(regexp_extract(n, '[.]([0-9]*)', 1), '0')))",
            f"bool_or(CASE WHEN length(n) > {_DOUBLE_DIGITS} OR regexp_matches(n, '[eE]') THEN NOT coalesce({kept}, false) "
            "ELSE false END)",
        ]
        rows = self._ask(
            f"SELECT i, {', '.join(asked)} FROM (SELECT i, {number} AS n FROM {self._each(self._relation, columns)} "
            "WHERE v IS NOT NULL) GROUP BY i"
        )
        return {columns[at]: self._number(*measured) for at, *measured in rows}

    def _number(self, whole: bool, small: bool, special: bool, before: int, after: int, lossy: bool) -> Guess:
        if whole and small:
            return Guess("BIGINT")
        if not whole and not lossy:
            return Guess("DOUBLE")
        width = max(before + after, 1)
        if special or width > _MOST_DIGITS:
            return Guess("VARCHAR", note="text: DOUBLE would lose digits")
        reason = "BIGINT holds fewer digits" if whole else "DOUBLE would lose digits"
        return Guess(f"DECIMAL({width},{after})", note=reason)

    def _dates(self, columns: Sequence[str], kinds: Mapping[str, _Kinds]) -> dict[str, Guess]:
        """Returns the columns with booleans, times and dates, and the format if a cast cannot read it."""
        guesses: dict[str, Guess] = {}
        asked_for = self._form.dates
        if asked_for:
            fitting = self._fitting([(name, asked_for) for name in columns if kinds[name].filled])
            kind = "TIMESTAMP" if re.search(r"%[HIMSfcTXn]", asked_for) else "DATE"
            guesses |= {name: Guess(kind, asked_for, f"{_KIND[kind]} as {asked_for}") for name, _ in fitting}
        tried: list[tuple[str, str]] = []
        for name in columns:
            shape = kinds[name]
            if name in guesses or not shape.filled:
                continue
            if shape.boolean:
                guesses[name] = Guess("BOOLEAN")
            elif shape.times and not shape.number:
                note = "dates, the year first" if asked_for and shape.times[0] == "DATE" else ""
                guesses[name] = Guess(shape.times[0], note=note)
            elif shape.shaped == shape.filled:
                tried += [(name, form) for form in _formats(shape.shapes)]
        fitting = self._fitting(tried)
        for name in dict.fromkeys(name for name, _ in tried):
            forms = [form for at, form in fitting if at == name]
            if forms:
                kind = "TIMESTAMP" if ":" in forms[0] else "DATE"
                also = f"; {forms[1]} fits, too" if len(forms) > 1 else ""
                guesses[name] = Guess(kind, forms[0], f"{_KIND[kind]} as {forms[0]}{also}")
        return guesses

    def _fitting(self, tried: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Returns the (column, format) pairs whose format fits all values."""
        if not tried:
            return []
        asked = (
            f"coalesce(bool_and(try_strptime(trim({quote_identifier(name)}), {quote_text(form)}) IS NOT NULL) "
            f"FILTER ({quote_identifier(name)} IS NOT NULL), false)"
            for name, form in tried
        )
        (fits,) = self._ask(f"SELECT {', '.join(asked)} FROM {self._relation}")
        return [one for one, is_so in zip(tried, fits, strict=True) if is_so]

    def _nearly(self, columns: Sequence[str]) -> dict[str, str]:
        """Explains columns that stay text: they mix numbers or dates in several forms, or with marks of NULL."""
        # the first values show that most columns hold words
        some = self._nearly_in(columns, f"(FROM {self._relation} LIMIT {_FIRST})")
        return self._nearly_in(list(some), self._relation)

    def _nearly_in(self, columns: Sequence[str], relation: str) -> dict[str, str]:
        if not columns:
            return {}
        marks = f"v IN ({', '.join(map(quote_text, _NULLS))})"
        plain = "regexp_full_match(v, '[+-]?(0|[1-9][0-9]*)([.][0-9]+)?')"
        thousands = "regexp_full_match(v, '[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+([.][0-9]+)?')"
        comma = "regexp_full_match(v, '[+-]?(0|[1-9][0-9]*|[1-9][0-9]{0,2}([.][0-9]{3})+),[0-9]+')"
        date = "regexp_matches(v, '^[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T]|$)')"
        asked = [
            f"bool_and({plain} OR {marks}) AND bool_or({plain})",
            f"bool_and({plain} OR {thousands} OR {marks})",
            f"any_value(v) FILTER ({thousands})",
            f"bool_and({plain} OR {comma} OR {marks})",
            f"any_value(v) FILTER ({comma})",
            f"list(DISTINCT v) FILTER ({marks})",
            f"bool_and({date} OR {marks})",
            f"list(DISTINCT e) FILTER ({date})",
        ]
        # one example per shape and order, not every value
        each = (
            "(SELECT i, v, min(v) OVER (PARTITION BY i, regexp_replace(v, '[0-9]+', '9', 'g'), "
            "try_strptime(v, ['%d/%m/%Y', '%d.%m.%Y', '%d-%m-%Y']) IS NULL) AS e "
            f"FROM {self._each(relation, columns)} WHERE v IS NOT NULL)"
        )
        rows = self._ask(f"SELECT i, {', '.join(asked)} FROM {each} GROUP BY i")
        notes = {}
        for at, plainly, by_thousands, thousand, by_comma, fraction, nulls, dates, examples in rows:
            parts = [f"--null {shlex.quote(null)} reads {null} as NULL" for null in sorted(nulls or ())]
            if by_thousands and thousand is not None:
                parts.append(f"--thousands , makes {thousand} a number")
            elif by_comma and fraction is not None:
                more = " --thousands ." if "." in fraction else ""
                parts.append(f"--decimal ,{more} makes {fraction} a number")
            elif dates and examples:
                shown = ", ".join(sorted(examples)[:_EXAMPLES])
                if len(examples) > 1:
                    parts.insert(0, f"dates in several formats: {shown}")
                elif _short_year(examples[0]):
                    parts.insert(0, f"years of two digits, {shown}; --dates FORMAT says how to read them")
                elif not parts:
                    parts.append(f"dates in no format that fits all, such as {shown}")
            elif not (plainly and parts):
                continue
            notes[columns[at]] = "text: " + "; ".join(parts)
        return notes


_KIND = {"DATE": "dates", "TIMESTAMP": "times"}


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Facts that hold for all values of a column.

    Attributes:
        filled: the number of values that are not NULL.
        times: time types that fit all values.
        shapes: shapes of texts that look like dates, with 9 for each digit.
        shaped: the number of values that look like dates.
    """

    filled: int
    rows: int
    number: bool
    boolean: bool
    times: tuple[str, ...]
    shapes: tuple[str, ...]
    shaped: int

    @property
    def gaps(self) -> bool:
        return self.filled < self.rows

    @property
    def may_be(self) -> bool:
        """Returns whether a type other than text may fit the column."""
        return not self.filled or self.number or self.boolean or bool(self.times) or self.shaped == self.filled


def _formats(shapes: Sequence[str]) -> list[str]:
    """Returns the date formats that texts of some shapes may have; [] if a shape has no four-digit year."""
    formats: dict[str, None] = {}
    for shape in shapes:
        match = _SHAPE.fullmatch(shape)
        if match is None:
            return []
        separator, year, first, first_separator, clock, half = match.groups()
        if year == "99":
            return []
        sep = separator or first_separator
        days = [f"%Y{sep}%m{sep}%d"] if first else [f"%d{sep}%m{sep}%Y", f"%m{sep}%d{sep}%Y"]
        time = ""
        if clock:
            time = " %I:%M" if half else " %H:%M"
            time += ":%S" if clock.count(":") == 2 else ""
            time += " %p" if half else ""
        formats |= dict.fromkeys(day + time for day in days)
    return list(formats)


def _short_year(example: str) -> bool:
    return not re.search(r"(^|\D)[0-9]{4}(\D|$)", example)
