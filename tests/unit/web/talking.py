"""Page in Python: it takes messages apart, and asks."""

from __future__ import annotations

import json
import struct
from typing import Any


def unpacked(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The inverse of `comms.packed`, as `page-socket.ts` of the page does it."""
    (length,) = struct.unpack_from("<I", data)
    message: dict[str, Any] = json.loads(data[4 : 4 + length])
    at, buffers = 4 + length, []
    for size in message.pop("sizes"):
        buffers.append(data[at : at + size])
        at += size
    assert at == len(data)
    return message, buffers
