"""A server of this process that speaks S3, and fails on request: it refuses, hangs, cuts bodies, and loses its answers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pyarrow import fs

from ducklake_lab import filesystems
from tests.object_store import ObjectStore, object_store

#: What a request is for: one object in one request, or in parts that are begun, sent, ended or aborted, or the list of
#: those that were begun; a copy; and the rest.
Kind = Literal["PUT", "BEGIN", "PART", "END", "ABORT", "UPLOADS", "COPY", "DELETE", "LIST", "GET", "HEAD"]
#: What is written by: all that a store may refuse of a file.
WRITES: tuple[Kind, ...] = ("PUT", "BEGIN", "PART", "END", "COPY")
#: All that a store may refuse.
REQUESTS: tuple[Kind, ...] = (*WRITES, "DELETE", "LIST", "GET", "HEAD")
#: A status that is answered; or: the connection is closed before it is done, or after, or amid the body; it takes seconds.
How = int | Literal["drop", "lose", "cut", "hang", "slow"]
_CODES = {403: "AccessDenied", 404: "NoSuchKey", 500: "InternalError", 503: "SlowDown"}


@dataclass
class Fault:
    """Fault of the store: after the first `skip`, requests of some kinds fail, as often as `times` says, or always."""

    kinds: tuple[Kind, ...]
    how: How
    times: int | None = None
    seconds: float = 0.05
    skip: int = 0


class FaultyStore(ObjectStore):
    """The application; `failed` counts the requests that went wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Fault | None = None
        self.failed = 0
        self._lock = threading.Lock()

    @contextmanager
    def failing(
        self, *kinds: Kind, how: How, times: int | None = None, seconds: float = 0.05, skip: int = 0
    ) -> Iterator[None]:
        """Lets requests go wrong while the block runs."""
        self.failed, self.fault = 0, Fault(kinds, how, times, seconds, skip)
        try:
            yield
        finally:
            self.fault = None

    def uploads(self, bucket: str) -> list[str]:
        """Return the keys of the uploads in parts that were begun, and neither ended nor aborted."""
        return [upload["Key"] for upload in self.client().list_multipart_uploads(Bucket=bucket).get("Uploads", ())]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        fault = self.fault
        if fault is None or kind_of(environ) not in fault.kinds or not self._is_due(fault):
            return super().__call__(environ, start_response)
        # what is sent is read in any case: the client would take a closed connection for another fault
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) if fault.how != "slow" else b""
        environ = environ if fault.how == "slow" else {**environ, "wsgi.input": _Body(body)}
        if isinstance(fault.how, int):
            return _refuse(fault.how, start_response)
        if fault.how in ("hang", "slow"):
            time.sleep(fault.seconds)
        if fault.how == "slow":
            return super().__call__(environ, start_response)
        if fault.how == "lose":
            for _ in super().__call__(environ, lambda *_: None):
                pass
        if fault.how != "cut":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            start_response("500 Internal Server Error", [("Content-Length", "0")])
            return []
        whole = b"".join(super().__call__(environ, start_response))
        return [whole[: len(whole) // 2]]

    def _is_due(self, fault: Fault) -> bool:
        """Return whether a request of its kinds fails, and count it."""
        with self._lock:
            if fault.times == 0 or fault.skip:
                fault.skip = max(0, fault.skip - 1)
                return False
            fault.times = None if fault.times is None else fault.times - 1
            self.failed += 1
            return True


class _Body:
    """A request's body that has been read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size is None or size < 0 else size
        found, self._data = self._data[:end], self._data[end:]
        return found


def kind_of(environ: dict[str, Any]) -> Kind | None:
    """Return the kind of a request; None for requests about buckets."""
    method, query = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "")
    if "list-type" in query:
        return "LIST"
    if method == "POST":
        return "BEGIN" if query.startswith("uploads") else "END" if "uploadId" in query else "DELETE"
    if method == "PUT":
        return "PART" if "partNumber" in query else "COPY" if "HTTP_X_AMZ_COPY_SOURCE" in environ else "PUT"
    if method == "GET" and query.startswith(("uploads", "encoding-type")):
        return "UPLOADS"
    if method == "DELETE" and "uploadId" in query:
        return "ABORT"
    return method if method in ("GET", "HEAD", "DELETE") else None


def _refuse(status: int, start_response: Callable[..., Any]) -> list[bytes]:
    code = _CODES[status]
    start_response(f"{status} {code}", [("Content-Type", "application/xml")])
    return [f"<Error><Code>{code}</Code><Message>the store is told to</Message></Error>".encode()]


def make_impatient(monkeypatch: pytest.MonkeyPatch, seconds: float = 1) -> None:
    """Lets clients of the store wait so long, try once, and take no credentials from elsewhere."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    own = filesystems._one_request()
    quick = {**own, "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=1), "request_timeout": seconds}
    monkeypatch.setattr(filesystems, "_one_request", lambda: quick)
    filesystems._connect.cache_clear()


@contextmanager
def faulty_store(*buckets: str) -> Iterator[FaultyStore]:
    """Runs one with empty buckets while the block does."""
    with object_store(*buckets, store=FaultyStore()) as store:
        assert isinstance(store, FaultyStore)
        yield store
