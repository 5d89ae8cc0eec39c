"""Prints the address of a query's live page; imports nothing of the page if there is none."""

from __future__ import annotations

import sys

from tidegate.cli.line import say


def tell_page(url: str | None) -> None:
    """Prints the page's address and its token for changes; the token itself only to a terminal."""
    if url is None:
        return
    from tidegate.dashboard.guard import user_token

    token, place = user_token()
    told = f"token {token}" if sys.stderr.isatty() else f"the token is in {place}"
    say(f"the dashboard is at {url}; to change something, {told}", url=url)
