"""Creates a query's sinks from `--out` and `--format`."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.errors import OptionError, near
from tidegate.remote.scheme import shown, without_keys
from tidegate.sink.address import Address
from tidegate.sink.null_sink import NothingSink
from tidegate.sink.protocol import Formatted, SidePlaces, Sink
from tidegate.sink.registry import IN_PROGRAM, SINKS, at, class_at
from tidegate.sink.side_text import SHOWN_ROWS, SideText

CONSOLE = "console"
"""The scheme of the default output."""

SCHEMES = tuple(scheme for scheme in SINKS if scheme not in IN_PROGRAM)


def address_of(out: str | None, format: str | None) -> Address:
    """The output address; raises if no sink can be made of it, before anything starts."""
    address = Address.parse(f"{CONSOLE}:" if out is None else out, "--out")
    if address.scheme in IN_PROGRAM:
        raise OptionError(
            "--out",
            "must be a place that outlives the command",
            address.text,
            f"{address.scheme}: is for Python programs. Use a folder, or {CONSOLE}:.",
        )
    if format is not None:
        sinks = class_at(address, SCHEMES)
        if not isinstance(sinks, Formatted):
            raise OptionError(
                "--format",
                "is for results in files and topics",
                f"{format} for {shown(address.text)}",
                "Give a folder as --out, or leave --format out.",
            )
        if format not in sinks.formats:
            remedy = near(format, sinks.formats)
            raise OptionError("--format", "must be a known format", format, remedy)
        address = address.with_parameter("--format", "format", format)
    at(address, None, SCHEMES)
    return address


def sinks_of(
    names: Sequence[str | None], address: Address, viewed: bool = False
) -> dict[str | None, Sink]:
    """The sinks of a query's outputs by name; None is the name of a single one.

    Rows of several outputs would mix on a console, but a live view keeps them apart.
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
    """Where late and rejected rows go, for a run's summary."""
    sink = at(address)
    if isinstance(sink, SidePlaces):
        return dict(sink.side_places)
    folder = without_keys(address.text.partition("?")[0]).rstrip("/")
    if address.scheme != CONSOLE:
        return {kind: f"are in {folder}/_{kind}" for kind in ("late", "rejected")}
    seen = f"were only shown, the first {SHOWN_ROWS}"
    return {kind: f"{seen}; --out DIR keeps them in DIR/_{kind}" for kind in ("late", "rejected")}


def beside_view(sinks: dict[str | None, Sink], address: Address) -> dict[str | None, Sink]:
    """The sinks of a run with a live view, which shows the rows instead of printing them.

    Late and rejected tuples are still printed; they appear above the view.
    """
    if address.scheme != CONSOLE:
        return sinks
    return {name: NothingSink(SideText()) for name in sinks}
