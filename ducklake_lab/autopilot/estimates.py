"""Expected times of pieces, from runs that the lake has recorded."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ducklake_lab.autopilot.plan import Piece

#: Begins the message of each commit of a run.
MESSAGE = "autopilot: "
#: Member of the note of a commit.
_KEY = "autopilot"
#: Runs that are looked at, the newest first.
MOST = 200
#: Bytes of a note that is read.
_LONGEST = 10_000
#: Seconds of a commit, and bytes, rows, snapshots or files of a second, where no run is recorded.
_COMMIT = 0.3
_SPEEDS: Mapping[str, float] = {"merge": 30e6, "rewrite": 30e6, "flush": 50_000, "expire": 1_000, "clean up": 500}


@dataclass(frozen=True, slots=True)
class Record:
    """The time of one piece that has run.

    Attributes:
        amount: see `Piece.amount`.
    """

    step: str
    amount: float
    seconds: float


def note_of(piece: Piece, seconds: float) -> str:
    """Return the note of a commit that records a run."""
    return json.dumps({_KEY: {"step": piece.step, "amount": piece.amount, "seconds": round(seconds, 3)}})


def records_of(notes: Iterable[object]) -> list[Record]:
    """Return the runs that notes of commits record; notes of another form are left out."""
    return [record for note in notes if (record := _read(note)) is not None]


def _read(note: object) -> Record | None:
    if not isinstance(note, str) or len(note) > _LONGEST:
        return None
    try:
        found = json.loads(note)
        own = found[_KEY]
        record = Record(str(own["step"]), float(own["amount"]), float(own["seconds"]))
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
    sound = all(math.isfinite(one) and one > 0 for one in (record.amount, record.seconds))
    return record if sound and record.step in _SPEEDS else None


class Estimates:
    """Expected seconds of pieces.

    Attributes:
        records: how many recorded runs they come from.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._records: dict[str, list[Record]] = {}
        for record in records:
            self._records.setdefault(record.step, []).append(record)
        self.records = sum(map(len, self._records.values()))

    def of(self, piece: Piece) -> float:
        """Return the expected seconds: by the speed of earlier pieces of the step, or by its bytes."""
        known = self._records.get(piece.step)
        if not known:
            return _COMMIT + piece.amount / _SPEEDS[piece.step]
        speed = sum(one.amount for one in known) / sum(one.seconds for one in known)
        return max(min(one.seconds for one in known), piece.amount / speed)

    def basis(self, pieces: Iterable[Piece]) -> str:
        """Say where the times of some pieces come from."""
        steps = {piece.step for piece in pieces}
        count = sum(len(self._records.get(step, ())) for step in steps)
        if not count:
            return "times are estimates from bytes and rows, as no run is recorded yet"
        rest = "" if steps <= self._records.keys() else ", and from bytes and rows"
        return f"times are estimates from {count:,} recorded run{'s' if count > 1 else ''}{rest}"
