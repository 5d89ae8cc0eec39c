"""The share of its tuples that a query is told to shed: 90 percent, off, auto; and who asks."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.elastic.request import check_why
from tidegate.errors import OptionError

SHED = "shed"


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


def share_of(given: object) -> float | None:
    """A share as it may be given: 0.9, "90 percent", "off", or "auto", which is None."""
    if isinstance(given, str):
        words = given.lower().replace("%", " percent").split()
        if words == ["off"]:
            return 0.0
        if words == ["auto"]:
            return None
        if len(words) == 2 and words[1] == "percent":
            try:
                return _checked(float(words[0]) / 100, given)
            except ValueError:
                pass
    elif isinstance(given, int | float) and not isinstance(given, bool):
        return _checked(float(given), given)
    raise _refused(given)


def _checked(share: float, given: object) -> float:
    if not 0 <= share < 1:
        raise _refused(given)
    return share


def _refused(given: object) -> OptionError:
    return OptionError(
        SHED,
        "the share must be at least 0 and below 100 percent",
        str(given),
        "Write 90 percent, off, or auto, in Python 0.9.",
    )


def share_text(share: float | None) -> str:
    """A share as `tidegate ctl` has it."""
    if share is None:
        return "auto"
    return f"{round(share * 100, 6):g} percent" if share else "off"
