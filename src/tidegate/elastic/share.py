"""A request for another share of the tuples to be shed."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.elastic.request import check_why
from tidegate.elastic.shed_share import SHED, share_text


@dataclass(frozen=True)
class ShareRequest:
    """Somebody asks that this share be shed; None leaves it to the backlog again."""

    share: float | None
    by: str = "user"
    why: str = ""
    time: str = ""

    def __post_init__(self) -> None:
        check_why(self.why, SHED)

    def __str__(self) -> str:
        return f"{SHED} {share_text(self.share)}"
