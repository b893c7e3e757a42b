"""A server that speaks the JSON API of Google Cloud Storage, as far as pyarrow asks, and fails on request.

It runs in a process of its own, as pyarrow may keep Python's lock while it waits for an answer.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import Request, urlopen

#: What a request is for; a file is sent in one or more requests after one that begins it.
Kind = Literal["BEGIN", "SEND", "COPY", "READ", "STAT", "LIST", "DELETE"]
#: What is written by.
WRITES: tuple[Kind, ...] = ("BEGIN", "SEND", "COPY")
#: A status that is answered; or: the connection is closed before it is done, or after, or amid the body.
How = int | Literal["drop", "lose", "cut"]


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class FaultyGoogleStore:
    """The server, seen from the tests.

    Attributes:
        endpoint: its host and port.
    """

    def __init__(self, port: int) -> None:
        self.endpoint = f"127.0.0.1:{port}"

    @contextmanager
    def failing(self, *kinds: Kind, how: How) -> Iterator[None]:
        """Lets requests go wrong while the block runs."""
        self._tell({"kinds": kinds, "how": how})
        try:
            yield
        finally:
            self._tell({"kinds": (), "how": 0})

    @property
    def failed(self) -> int:
        """How many requests went wrong since requests were last asked to."""
        return self._tell({})

    def _tell(self, said: dict[str, object]) -> int:
        with urlopen(Request(f"http://{self.endpoint}/tell", json.dumps(said).encode(), method="POST")) as answer:
            return int(answer.read())


class _Buckets:
    """Buckets, which need not be made, and how requests about them go wrong."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.endpoint = ""
        self._failed = 0
        self._fault: tuple[list[Kind], How] = [], 0
        self._begun: dict[str, tuple[str, bytearray]] = {}

    def hear(self, said: dict[str, Any]) -> int:
        """Take what the tests tell; the end of a fault keeps the count."""
        if "kinds" in said:
            self._fault = said["kinds"], said["how"]
            self._failed = 0 if said["kinds"] else self._failed
        return self._failed

    def fault_of(self, kind: Kind) -> How | None:
        """Return how a request goes wrong; None if it does not."""
        if kind not in self._fault[0]:
            return None
        self._failed += 1
        return self._fault[1]

    def answer(self, kind: Kind, url: str, headers: Message, body: bytes) -> Answer:
        """Do what a request asks for."""
        place = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(place.query, keep_blank_values=True).items()}
        bucket, key = names_in(place.path)
        if kind == "LIST":
            found = sorted(name for name in self.objects if name.startswith(f"{bucket}/{query.get('prefix', '')}"))
            return _json({"kind": "storage#objects", "items": [self._about(name) for name in found]})
        if kind == "BEGIN":
            upload = str(len(self._begun))
            self._begun[upload] = f"{bucket}/{query['name']}", bytearray()
            return Answer(200, b"", (("Location", f"http://{self.endpoint}{place.path}?upload_id={upload}"),))
        if kind == "SEND":
            return self._take(query["upload_id"], headers.get("Content-Range", ""), body)
        name = f"{bucket}/{key}"
        if kind == "COPY":
            source, target = (unquote(part) for part in key.split("/rewriteTo/b/"))
            name, copy = f"{bucket}/{source}", target.replace("/o/", "/", 1)
            if name in self.objects:
                self.objects[copy] = self.objects[name]
                size = str(len(self.objects[name]))
                done = {"done": True, "objectSize": size, "totalBytesRewritten": size, "resource": self._about(copy)}
                return _json({"kind": "storage#rewriteResponse", **done})
        if name not in self.objects:
            return _json({"error": {"code": 404, "message": "No such object"}}, 404)
        if kind == "DELETE":
            del self.objects[name]
            return Answer(204)
        return self._read(name, headers.get("Range", "")) if kind == "READ" else _json(self._about(name))

    def _take(self, upload: str, written: str, body: bytes) -> Answer:
        name, data = self._begun[upload]
        found = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", written)
        if found is None or found[1] is not None:
            begin = int(found[1]) if found is not None else 0
            data[begin:] = body
        if found is not None and found[2] != str(len(data)):
            return Answer(308, b"", (("Range", f"bytes=0-{len(data) - 1}"),) if data else ())
        self.objects[name] = bytes(data)
        return _json(self._about(name))

    def _read(self, name: str, wanted: str) -> Answer:
        data, found = self.objects[name], re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
        if found is None:
            return Answer(200, data)
        begin = int(found[1])
        part = data[begin : int(found[2]) + 1 if found[2] else None]
        return Answer(206, part, (("Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{len(data)}"),))

    def _about(self, name: str) -> dict[str, str]:
        bucket, _, key = name.partition("/")
        times = dict.fromkeys(("timeCreated", "updated"), "2026-01-01T00:00:00.000Z")
        kinds = {"kind": "storage#object", "generation": "1", "metageneration": "1"}
        return {**kinds, "name": key, "bucket": bucket, "size": str(len(self.objects[name])), **times}


def names_in(path: str) -> tuple[str, str]:
    """Return the bucket and the key, which is quoted in copies, of a request's path."""
    bucket, _, key = path.partition("/b/")[2].partition("/o")
    return unquote(bucket), key.removeprefix("/") if "/rewriteTo/" in key else unquote(key.removeprefix("/"))


def kind_of(method: str, url: str) -> Kind:
    """Return the kind of a request."""
    place = urlsplit(url)
    if method in ("POST", "PUT"):
        if "/rewriteTo/" in place.path:
            return "COPY"
        return "BEGIN" if method == "POST" else "SEND"
    if method == "DELETE":
        return "DELETE"
    if "alt=media" in place.query or "/storage/v1/" not in place.path:
        return "READ"
    return "STAT" if names_in(place.path)[1] else "LIST"


def _json(found: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(found).encode(), (("Content-Type", "application/json"),))


@contextmanager
def faulty_google_store() -> Iterator[FaultyGoogleStore]:
    """Runs one while the block does."""
    process = subprocess.Popen([sys.executable, "-m", "tests.faulty_google_store"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield FaultyGoogleStore(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(20)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    buckets = _Buckets()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/tell":
            return self._send(Answer(200, str(self.buckets.hear(json.loads(body))).encode()))
        kind = kind_of(self.command, self.path)
        how = self.buckets.fault_of(kind)
        if isinstance(how, int):
            return self._send(_json({"error": {"code": how, "message": "the store is told to"}}, how))
        answer = None if how == "drop" else self.buckets.answer(kind, self.path, self.headers, body)
        if answer is not None and how != "lose":
            self._send(answer, 2 if how == "cut" else 1)
        if how is not None:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        return None

    def _send(self, answer: Answer, part: int = 1) -> None:
        self.send_response(answer.status)
        for name, value in (*answer.headers, ("Content-Length", str(len(answer.body)))):
            self.send_header(name, value)
        self.end_headers()
        # a client may stop reading
        with suppress(ConnectionError):
            self.wfile.write(answer.body[: len(answer.body) // part])

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  (names of the base class)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    _Handler.buckets.endpoint = f"127.0.0.1:{server.server_port}"
    print(server.server_port, flush=True)
    server.serve_forever()
