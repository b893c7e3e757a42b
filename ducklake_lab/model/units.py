"""Numbers with units, for people."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """1 table, 5 tables, 1,200 entries."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number: int) -> str:
    """Bytes, decimal units: 84 kB, 31 MB, 2.6 MB."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            digits = 1 if unit != "B" and abs(value) < 9.95 else 0
            return f"{value:.{digits}f} {unit}"
        value /= 1000
    raise AssertionError
