"""Says where the page of a query is; imports nothing of a page where there is none."""

from __future__ import annotations

import sys

from tidegate.cli.line import say


def tell_page(url: str | None) -> None:
    """Say where the page is, and the token for changes: itself only to who sees a terminal."""
    if url is None:
        return
    from tidegate.dashboard.guard import user_token

    token, place = user_token()
    told = f"token {token}" if sys.stderr.isatty() else f"the token is in {place}"
    say(f"the dashboard is at {url}; to change something, {told}", url=url)
