"""Access to the server: for the page that has the link, from this machine, and for no other page of the browser."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

#: The only address that is listened on.
ADDRESS = "127.0.0.1"
#: Names by which a browser on this machine, or at the other end of a tunnel, reaches it.
_NAMES = (ADDRESS, "localhost")


@dataclass(frozen=True, slots=True)
class Access:
    """The rule for each request, WebSockets included.

    Attributes:
        port: the port that is listened on.
        token: the secret part of the link; it suffices to read the lake.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def link(self) -> str:
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def refusal(self, token: str, host: str | None, origin: str | None, *, needs_origin: bool = False) -> str | None:
        """Return why a request is refused, or None where it is not.

        A foreign Host is a sign of DNS rebinding; a foreign Origin is a page of another site.

        Args:
            token: the first part of the path.
            host: the request's Host header.
            origin: its Origin header; browsers send it with each WebSocket, and not with a page that a person opens.
            needs_origin: refuse where there is none.
        """
        hosts = [f"{name}:{self.port}" for name in _NAMES]
        if host not in hosts:
            return "This server answers to its own address only."
        if (origin is None and needs_origin) or (origin is not None and origin != f"http://{host}"):
            return "Another page asked for this."
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "The link is wrong or old; ducklake-lab open prints the right one."
        return None

    def policy(self, host: str) -> str:
        """The Content-Security-Policy of the page: code from this server alone, and talk to it alone.

        Views set widths and places in `style` attributes, which is why styles in the page are allowed.
        """
        return (
            "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; "
            f"connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
