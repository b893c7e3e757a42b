from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ducklake_lab.magics.progress import describe
from ducklake_lab.spark.progress import Progress, StageInputs


@pytest.mark.parametrize(
    ("state", "starting", "text"),
    [
        (None, False, "running 4.0 s"),
        (None, True, "Spark starting 4.0 s"),
        (Progress(1, 2, 3, 12, elapsed=1.0), False, "stage 2/2 · 3 of 12 tasks · 4.0 s"),
        (Progress(0, 2, 3, 12, elapsed=1.0, bytes_read=0), False, "stage 1/2 · 3 of 12 tasks · 4.0 s"),
        (Progress(0, 2, 3, 12, 1.0, 31_000_000), False, "stage 1/2 · 3 of 12 tasks · 31 MB read · 4.0 s"),
        (Progress(2, 2, 12, 12, elapsed=1.0), False, "stage 2/2 · 12 of 12 tasks · 4.0 s"),
    ],
)
def test_describe(state: Progress | None, starting: bool, text: str):
    assert describe(state, 4.0, starting=starting) == text


class SparkUi(BaseHTTPRequestHandler):
    """Answers as Spark's monitoring API does: a list of a stage's attempts, 404 for a stage that has not begun."""

    STAGES = {"3": [{"inputBytes": 20, "attemptId": 0}, {"inputBytes": 300, "attemptId": 1}], "4": [{"inputBytes": 5}]}

    def do_GET(self) -> None:
        place, _, stage = self.path.rpartition("/")
        found = self.STAGES.get(stage) if place == "/api/v1/applications/local-1/stages" else None
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found or "unknown stage").encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_bytes_read_come_from_the_ui_where_there_is_one() -> None:
    assert StageInputs(None, "local-1").bytes([3]) is None
    server = HTTPServer(("127.0.0.1", 0), SparkUi)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        inputs = StageInputs(f"http://127.0.0.1:{server.server_port}", "local-1")
        started = time.monotonic()
        while inputs.bytes([3, 4, 99]) is None and time.monotonic() - started < 20:
            time.sleep(0.01)
        assert inputs.bytes([3, 4, 99]) == 325
    finally:
        server.shutdown()
        server.server_close()
    gone = StageInputs(f"http://127.0.0.1:{server.server_port}", "local-1")
    assert gone.bytes([3]) is None
