"""Comms of widgets over something that carries bytes to a page, where a notebook's go over a kernel's sockets."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence

from comm.base_comm import BaseComm

#: Carries one message to the page.
Post = Callable[[bytes], None]


def packed(message: Mapping[str, object], buffers: Sequence[bytes | memoryview] = ()) -> bytes:
    """A message and its buffers: the length of the JSON in four bytes, little-endian, the JSON, and the buffers.

    `sizes` of the JSON has the buffers' lengths in bytes.
    """
    parts = [bytes(buffer) for buffer in buffers]
    head = json.dumps({**message, "sizes": [len(part) for part in parts]}, allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(head)), head, *parts))


class PageComm(BaseComm):
    """The comm of a widget whose model is in a page.

    It sends a kernel's messages: `{type: "comm_msg", comm, data}` with a widget's message as data, and `comm_close`.
    """

    def __init__(self, comm_id: str, post: Post) -> None:
        self._post = post
        # The page asked for the widget, so it need not be asked to open its end.
        super().__init__(target_name="jupyter.widget", comm_id=comm_id, primary=False)

    def publish_msg(
        self,
        msg_type: str,
        data: dict[str, object] | None = None,
        metadata: dict[str, object] | None = None,
        buffers: list[bytes] | None = None,
        **keys: object,
    ) -> None:
        self._post(packed({"type": msg_type, "comm": self.comm_id, "data": data or {}}, buffers or ()))

    def close(
        self,
        data: dict[str, object] | None = None,
        metadata: dict[str, object] | None = None,
        buffers: list[bytes] | None = None,
        deleting: bool = False,
    ) -> None:
        # No manager of comms knows of this one, as if it were deleted: the conversation keeps it.
        super().close(data, metadata, buffers, deleting=True)

    def receive(self, data: Mapping[str, object]) -> None:
        """Hands a widget's message from the page to the widget."""
        self.handle_msg({"content": {"comm_id": self.comm_id, "data": dict(data)}, "buffers": []})
