"""Access rules of the dashboard server: own host names, own page, and a token for changes."""

from __future__ import annotations

import hmac
import os
import secrets
from email.message import Message
from ipaddress import ip_address
from urllib.parse import urlsplit

from tidegate.storage import disk
from tidegate.storage.user_folder import user_folder
from tidegate.storage.whole_file import whole_file

TOKEN = "TIDEGATE_DASHBOARD_TOKEN"
"""The environment variable with a token of the user's own choice."""


class DeniedError(Exception):
    """A denied request: the HTTP status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Guard:
    """The rules of one server.

    A server on the loopback interface answers only requests that name this host. That stops DNS
    rebinding: another site's page whose name resolves to this host reads nothing. Changes need the
    token and must come from the server's own page.
    """

    def __init__(self, token: str, host: str) -> None:
        self._token = token
        self._own = is_loopback(host)

    def check_host(self, headers: Message) -> None:
        name = urlsplit(f"//{headers.get('Host', '')}").hostname or ""
        if self._own and not is_loopback(name):
            raise DeniedError(403, f"must be asked for by a name of this host; got {name}")

    def check_change(self, headers: Message) -> None:
        """Raises for a change from another page or without the token."""
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("Host"):
            raise DeniedError(403, f"changes must come from this page; got one from {origin}")
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise DeniedError(403, "changes must come from this page; got one from another site")
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        # Compared in constant time, so that response times do not give the token away.
        right = hmac.compare_digest(given.strip().encode(), self._token.encode())
        if scheme.lower() != "bearer" or not right:
            raise DeniedError(401, "changes need the token; got none, or another one")


def is_loopback(host: str) -> bool:
    """Whether a name or address means this host."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def user_token() -> tuple[str, str]:
    """This user's token and where it is stored: an environment variable, or a file created once."""
    chosen = os.environ.get(TOKEN)
    if chosen:
        return chosen, TOKEN
    path = user_folder() / "dashboard.token"
    try:
        found = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        found = ""
    if not found:
        found = secrets.token_urlsafe(24)
        disk.make_folders(str(path.parent), 0o700)
        with whole_file(path, sync="nothing") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(found.encode() + b"\n")
    return found, str(path)
