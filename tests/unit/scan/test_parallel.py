"""Work on many files, shared out among threads."""

from __future__ import annotations

import threading

import pytest

from ducklake_lab.scan.parallel import in_parallel


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 500])
def test_each_item_is_worked_once_and_found_in_order(count: int) -> None:
    seen: list[int] = []

    def work(item: int) -> int:
        seen.append(item)
        return -item

    items = {f"f{i}": i for i in range(count)}
    assert list(in_parallel(items, work).items()) == [(f"f{i}", -i) for i in range(count)]
    assert sorted(seen) == list(range(count))


def test_items_are_worked_at_the_same_time() -> None:
    together = threading.Barrier(4, timeout=30)
    assert in_parallel(dict.fromkeys("abcd", 1), lambda _: together.wait() >= 0) == dict.fromkeys("abcd", True)


def test_after_a_failure_no_further_item_is_begun() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item"):
        in_parallel({str(i): i for i in range(1000)}, work)
    assert len(begun) < 1000


def test_work_within_work_waits_for_no_thread() -> None:
    def outer(item: int) -> int:
        return sum(in_parallel({"a": item, "b": 1}, lambda n: n).values())

    assert in_parallel({str(i): i for i in range(64)}, outer) == {str(i): i + 1 for i in range(64)}
