"""Access to the server: the token, the Host and the Origin of a request."""

from __future__ import annotations

import pytest

from ducklake_lab.web.access import Access

ACCESS = Access(8642, "secret")
HOST, ORIGIN = "127.0.0.1:8642", "http://127.0.0.1:8642"


def test_the_page_of_the_link_may_ask() -> None:
    assert ACCESS.link == "http://127.0.0.1:8642/secret/"
    assert ACCESS.refusal("secret", HOST, None) is None
    assert ACCESS.refusal("secret", HOST, ORIGIN, needs_origin=True) is None
    assert ACCESS.refusal("secret", "localhost:8642", "http://localhost:8642", needs_origin=True) is None


@pytest.mark.parametrize("token", ["", "secre", "secrets", "Secret", "ünï", "x" * 100_000])
def test_another_token_may_not(token: str) -> None:
    assert "link" in str(ACCESS.refusal(token, HOST, None))


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "127.0.0.1",
        "127.0.0.1:80",
        "evil.example:8642",
        "evil.example",
        "127.0.0.1:8642.evil.example",
        "[::1]:8642",
    ],
)
def test_another_name_of_this_machine_may_not(host: str | None) -> None:
    assert "address" in str(ACCESS.refusal("secret", host, None))


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:8643", "https://127.0.0.1:8642",
     "http://localhost:8642", "http://127.0.0.1:8642.evil.example", "file://"],
)  # fmt: skip
def test_another_page_may_not(origin: str) -> None:
    assert "page" in str(ACCESS.refusal("secret", HOST, origin))


def test_a_socket_names_its_page() -> None:
    assert "page" in str(ACCESS.refusal("secret", HOST, None, needs_origin=True))


def test_each_start_has_a_token_of_its_own_and_its_repr_hides_it() -> None:
    one, other = Access(1), Access(1)
    assert one.token != other.token
    assert len(one.token) >= 40
    assert one.token not in repr(one)
