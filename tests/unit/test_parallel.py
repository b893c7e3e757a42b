"""Work on many files, shared out among threads."""

from __future__ import annotations

import threading
import time

import pytest

from ducklake_lab.parallel import in_parallel


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 500])
def test_each_item_is_worked_once_and_found_in_order(count: int) -> None:
    seen: list[int] = []

    def work(item: int) -> int:
        seen.append(item)
        return -item

    assert in_parallel(range(count), work) == [-i for i in range(count)]
    assert sorted(seen) == list(range(count))


def test_items_are_worked_at_the_same_time() -> None:
    together = threading.Barrier(4, timeout=30)
    assert in_parallel("abcd", lambda _: together.wait() >= 0) == [True] * 4


def test_the_failure_of_a_helper_is_raised() -> None:
    caller = threading.get_ident()

    def work(_: int) -> None:
        time.sleep(0.01)
        if threading.get_ident() != caller:
            raise ValueError("a helper fails")

    with pytest.raises(ValueError, match="a helper fails"):
        in_parallel(range(1000), work)


def test_after_a_failure_no_further_item_is_begun() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item"):
        in_parallel(range(1000), work)
    assert len(begun) < 1000


def test_work_within_work_waits_for_no_thread() -> None:
    def outer(item: int) -> int:
        return sum(in_parallel([item, 1], lambda n: n))

    assert in_parallel(range(64), outer) == [i + 1 for i in range(64)]
