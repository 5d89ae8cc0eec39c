"""Makes the sinks of a query from `--out` and `--format`."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.errors import OptionError
from tidegate.remote.scheme import REMOTE, without_keys
from tidegate.sink.address import FILE, Address
from tidegate.sink.form import check_format
from tidegate.sink.nothing import NothingSink
from tidegate.sink.protocol import Sink
from tidegate.sink.registry import IN_PROGRAM, SINKS, at
from tidegate.sink.side_text import SHOWN_ROWS, SideText

CONSOLE = "console"
"""The scheme of where results go unless something else is said."""

SCHEMES = tuple(scheme for scheme in SINKS if scheme not in IN_PROGRAM)


def address_of(out: str | None, format: str | None) -> Address:
    """Where results are to go; refuses what no sink can be made of, before anything starts."""
    address = Address.parse(f"{CONSOLE}:" if out is None else out, "--out")
    if address.scheme in IN_PROGRAM:
        raise OptionError(
            "--out",
            "must be a place that outlives the command",
            address.text,
            f"{address.scheme}: is for Python programs. Use a folder, or {CONSOLE}:.",
        )
    if format is not None:
        check_format(format)
        if address.scheme not in (FILE, *REMOTE):
            raise OptionError(
                "--format",
                "is for results in files",
                f"{format} for {address.text}",
                "Give a folder as --out, or leave --format out.",
            )
        address = address.with_parameter("--format", "format", format)
    at(address, None, SCHEMES)
    return address


def sinks_of(
    names: Sequence[str | None], address: Address, viewed: bool = False
) -> dict[str | None, Sink]:
    """The sinks of a query's outputs by their names, None for the only one.

    Rows of several cannot be printed one among the other, but a live view shows them all.
    """
    if len(names) > 1 and address.scheme == CONSOLE and not viewed:
        raise OptionError(
            "--out",
            "is needed by a script with several outputs, unless a terminal shows them",
            ", ".join(str(n) for n in names),
            "Give a folder; each output gets one of its name in it.",
        )
    return {name: at(address, name) for name in names}


def side_places(address: Address) -> dict[str, str]:
    """What becomes of late and of rejected rows, for the summary of a run."""
    folder = without_keys(address.text.partition("?")[0]).rstrip("/")
    if address.scheme != CONSOLE:
        return {kind: f"are in {folder}/_{kind}" for kind in ("late", "rejected")}
    shown = f"were only shown, the first {SHOWN_ROWS}"
    return {kind: f"{shown}; --out DIR keeps them in DIR/_{kind}" for kind in ("late", "rejected")}


def beside_view(sinks: dict[str | None, Sink], address: Address) -> dict[str | None, Sink]:
    """The sinks of a run with a live view, which shows the rows instead of printing them.

    Late and rejected tuples are printed all the same; they appear above the view.
    """
    if address.scheme != CONSOLE:
        return sinks
    return {name: NothingSink(SideText()) for name in sinks}
