"""Checks whether values fit a type without loss: DuckDB casts each value and compares its text before and after."""

from __future__ import annotations

from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.types import FLOATS, INTEGERS, DataType, flat
from ducklake_lab.session.uploads.form import Form
from ducklake_lab.session.uploads.guessing import digits_of, number_text

_VARCHAR = flat("varchar")
#: Fractional digits of a second, by type.
_FRACTIONS = {"timestamp": 6, "timestamptz": 6, "timestamp_s": 0, "timestamp_ms": 3, "timestamp_ns": 9, "time": 6}
_TIME_ONLY = "[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?"


def cast(
    value: str, source: DataType | None, target: DataType, form: Form, dates: str | None = None, how: str = "CAST"
) -> str:
    """Returns SQL that casts a value of a column to its type.

    Args:
        source: the type of the value; None for text from a CSV file.
        dates: the date format of such text.
        how: `CAST`, which raises, or `TRY_CAST`, which returns NULL.
    """
    if source is None:
        if target.is_numeric:
            number = number_text(value, form)
            if target.name in FLOATS:
                number = f"CASE WHEN lower(trim({value})) IN ('nan', 'inf', '-inf', 'infinity', '-infinity') THEN {value} ELSE {number} END"
            # the cast names a text that is no number in its error
            value = f"coalesce({number}, {value})" if how == "CAST" else number
        elif dates is not None:
            strptime = "try_strptime" if how == "TRY_CAST" else "strptime"
            value = f"{strptime}(trim({value}), {quote_text(dates)})"
    return f"{how}({value} AS {target.sql()})"


def reads(value: str, source: DataType | None, target: DataType, form: Form, dates: str | None = None) -> str:
    """Returns a condition that a value is NULL or can be cast, with or without loss."""
    return f"({value} IS NULL OR {cast(value, source, target, form, dates, 'TRY_CAST')} IS NOT NULL)"


def fits(value: str, source: DataType | None, target: DataType, form: Form, dates: str | None = None) -> str:
    """Returns a condition that a castable value does not change in the cast."""
    if source is not None and (widens(source, target) or _keeps_all(target)):
        return "true"
    if target.is_nested:
        leaves = f"TRY_CAST({value} AS {_of_texts(target).sql()})"
        return f"coalesce({_parts_fit(leaves, target, form, source)}, true)"
    after = cast(value, source, target, form, dates, "TRY_CAST")
    if source is not None and source.name == "boolean":
        return f"({value} IS NULL OR CAST({after} AS BOOLEAN) IS NOT DISTINCT FROM {value})"
    if source is not None:
        before = f"CAST({value} AS VARCHAR)"
    else:
        before = number_text(value, form) if target.is_numeric else f"trim({value})"
    kept = _kept(before, after, target)
    return "true" if kept is None else f"({value} IS NULL OR coalesce({kept}, true))"


def widens(source: DataType, target: DataType) -> bool:
    """Returns whether a type holds all values of another type exactly."""
    if source == target:
        return True
    if source.is_nested and source.name == target.name:
        if source.name != "struct":
            return all(widens(a, b) for (_, a), (_, b) in zip(source.children, target.children, strict=True))
        fields = {name.casefold(): kind for name, kind in target.children}
        return all(
            name.casefold() in fields and widens(kind, fields[name.casefold()]) for name, kind in source.children
        )
    if target.name in FLOATS:
        most = 24 if target.name == "float32" else 53
        return source.name == "float32" or (source.name in INTEGERS and _bits(source)[1] <= most)
    if source.name in INTEGERS and target.name in INTEGERS:
        (signed, bits), (other, more) = _bits(source), _bits(target)
        return bits <= more and (other or not signed)
    before, after = digits(source), digits(target)
    return (
        before is not None
        and after is not None
        and target.decimal is not None
        and before[0] <= after[0]
        and before[1] <= after[1]
    )


def _bits(integer: DataType) -> tuple[bool, int]:
    """Returns whether an integer type has a sign, and its bits without the sign."""
    signed = not integer.name.startswith("u")
    return signed, int(integer.name.lstrip("uint")) - signed


def digits(number: DataType) -> tuple[int, int] | None:
    """Returns the most digits before and after the point of a numeric type; None for other types."""
    if number.decimal is not None:
        width, scale = number.decimal
        return width - scale, scale
    return (len(str(2 ** _bits(number)[1])), 0) if number.name in INTEGERS else None


def _keeps_all(target: DataType) -> bool:
    return target.name in ("varchar", "json", "variant", "blob", "uuid", "interval", "geometry")


def _kept(before: str, after: str, target: DataType) -> str | None:
    """Returns a condition that two texts have the same value; None for types whose casts lose nothing."""
    if target.is_numeric:
        return f"({before} IS NULL OR {digits_of(before)} = {digits_of(f'CAST({after} AS VARCHAR)')} AND NOT coalesce(isinf(TRY_CAST({after} AS DOUBLE)), false) OR regexp_matches({before}, '[a-df-zA-DF-Z]'))"
    if target.name == "date":
        # after the day: a time other than midnight, or a zone
        return f"NOT regexp_matches(regexp_extract({before}, '[0-9][ T]([0-9].*)$', 1), '[1-9]')"
    if target.name in _FRACTIONS:
        cut = f"length(rtrim(regexp_extract({before}, '[0-9][.]([0-9]+)', 1), '0')) <= {_FRACTIONS[target.name]}"
        if target.name == "time":
            return f"{cut} AND regexp_full_match({before}, '{_TIME_ONLY}')"
        if target.name == "timestamptz":
            return cut
        zone = f"regexp_extract({before}, ':[0-9.:]*( ?[+-][0-9:]+)$', 1)"
        return f"{cut} AND NOT regexp_matches({zone}, '[1-9]')"
    return None


def _of_texts(kind: DataType) -> DataType:
    """Returns a nested type with text as its innermost type."""
    if not kind.is_nested:
        return _VARCHAR
    return DataType(kind.name, tuple((name, _of_texts(child)) for name, child in kind.children))


def _parts_fit(value: str, kind: DataType, form: Form, source: DataType | None, depth: int = 0) -> str:
    """Returns a condition that the texts in a nested value fit a type.

    Args:
        source: the original type; None if unknown.
    """
    if source is not None and widens(source, kind):
        return "true"
    own = {name.casefold(): child for name, child in source.children} if source is not None else {}
    if not kind.is_nested:
        after = f"TRY_CAST({value} AS {kind.sql()})"
        kept = _kept(f"trim({value})", after, kind)
        return "true" if kept is None else f"({value} IS NULL OR coalesce({kept}, true))"
    if kind.name == "struct":
        parts = [
            _parts_fit(f"struct_extract({value}, {quote_text(name)})", child, form, own.get(name.casefold()), depth)
            for name, child in kind.children
        ]
        return f"({' AND '.join(parts)})"
    item = f"e{depth}"
    if kind.name == "list":
        return _all(value, item, _parts_fit(item, kind.children[0][1], form, own.get("element"), depth + 1))
    keys = _all(f"map_keys({value})", item, _parts_fit(item, kind.children[0][1], form, own.get("key"), depth + 1))
    values = _all(
        f"map_values({value})", item, _parts_fit(item, kind.children[1][1], form, own.get("value"), depth + 1)
    )
    return f"({keys} AND {values})"


def _all(values: str, item: str, condition: str) -> str:
    if condition == "true":
        return "true"
    return f"coalesce(list_bool_and(list_transform({values}, lambda {item}: {condition})), true)"
