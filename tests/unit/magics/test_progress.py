from __future__ import annotations

import json
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.stopping import on_interrupt
from ducklake_lab.magics.progress import describe
from ducklake_lab.spark.progress import Progress, StageInputs

pytestmark = pytest.mark.sampled(2)


@pytest.mark.parametrize(
    ("state", "starting", "text"),
    [
        (None, False, "running 4.0 s"),
        (None, True, "Spark starting 4.0 s"),
        (Progress(1, 2, 3, 12, elapsed=1.0), False, "stage 2/2 · 3 of 12 tasks · 4.0 s"),
        (Progress(0, 2, 3, 12, elapsed=1.0, bytes_read=0), False, "stage 1/2 · 3 of 12 tasks · 4.0 s"),
        (Progress(0, 2, 3, 12, 1.0, 31_000_000), False, "stage 1/2 · 3 of 12 tasks · 31 MB read · 4.0 s"),
        (0.432, False, "43% · 4.0 s"),
        (0.999, False, ">99% · 4.0 s"),
        (Progress(2, 2, 12, 12, elapsed=1.0), False, "stage 2/2 · 12 of 12 tasks · 4.0 s"),
    ],
)
def test_describe(state: Progress | float | None, starting: bool, text: str):
    assert describe(state, 4.0, starting=starting) == text


def test_a_statement_that_is_interrupted_is_stopping() -> None:
    assert describe(0.4, 2.0, stopping=True) == "stopping… 2.0 s"
    told: list[str] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark has one of its own
    try:
        with pytest.raises(KeyboardInterrupt), on_interrupt(lambda: told.append("stopping")):
            signal.raise_signal(signal.SIGINT)
        assert told == ["stopping"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_statement_in_process_says_how_far_it_is() -> None:
    shares: list[float] = []
    with dl.Session(engine="duckdb") as session:
        session.sql("CREATE TEMP TABLE t AS SELECT i, i % 1000 AS g FROM range(1500000) AS r(i)")
        session.on_progress = lambda share: shares.append(share) if isinstance(share, float) else None
        session.sql("SELECT g, max(sha256(sha256(sha256(i::VARCHAR)))) FROM t GROUP BY g").fetchall()
    assert shares and shares == sorted(shares) and 0 < shares[0] <= shares[-1] <= 1


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
