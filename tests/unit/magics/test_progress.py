import pytest

from ducklake_lab.magics.progress import describe
from ducklake_lab.spark.progress import Progress


@pytest.mark.parametrize(
    ("state", "starting", "text"),
    [
        (None, False, "running 4.0 s"),
        (None, True, "Spark starting 4.0 s"),
        (Progress(1, 2, 3, 12, elapsed=1.0), False, "stage 2/2 · 3 of 12 tasks · 4.0 s"),
        (Progress(2, 2, 12, 12, elapsed=1.0), False, "stage 2/2 · 12 of 12 tasks · 4.0 s"),
    ],
)
def test_describe(state: Progress | None, starting: bool, text: str):
    assert describe(state, 4.0, starting=starting) == text
