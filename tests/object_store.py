"""A server of this process that speaks S3, counts what it is asked, and may take its time."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


class ObjectStore:
    """The application: `requests` counts by method, listings as LIST; each takes `latency` seconds longer."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.latency = 0.0
        self.endpoint = ""
        self._app = DomainDispatcherApplication(create_backend_app)

    def client(self) -> Any:
        """Return a client of the AWS SDK for Python."""
        import boto3

        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s"
        )

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        self.requests["LIST" if "list-type" in environ.get("QUERY_STRING", "") else method] += 1
        if self.latency:
            time.sleep(self.latency)
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer


@contextmanager
def object_store(*buckets: str, store: ObjectStore | None = None) -> Iterator[ObjectStore]:
    """Runs one with empty buckets while the block does."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = store or ObjectStore()
    server = make_server("127.0.0.1", 0, store, threaded=True)
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        client = store.client()
        for bucket in buckets:
            client.create_bucket(Bucket=bucket)
        store.requests.clear()
        yield store
    finally:
        server.shutdown()
        thread.join()
