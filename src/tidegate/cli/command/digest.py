"""`tidegate digest`: one number for the sequence of rows of an output."""

from __future__ import annotations

import click

from tidegate.cli.option.signed_by import SIGNED_BY, signed_by_option, signed_line
from tidegate.cli.option.value import PathText, TimeText
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.driver.report.metrics import digest_line
from tidegate.errors import CheckpointError, OptionError
from tidegate.session.verification.signed_chain import signed_ends
from tidegate.sink.folder.written_rows import (
    EventSpan,
    checked_digest,
    digest_of,
    outputs_in,
)
from tidegate.state.signature import PublicKey
from tidegate.state.store import Store


@click.command()
@click.argument("place", type=PathText(), metavar="OUT|CHECKPOINT")
@click.option(
    "--until",
    type=TimeText(),
    metavar="T",
    help="Only rows whose window_end, or ts, is at most this time. Reads the output, also that of "
    "a CHECKPOINT.",
)
@signed_by_option(
    "Of a CHECKPOINT: the digests that its newest link has signed, after all links were checked "
    "with this public key. Reads no output."
)
@answers
def digest(place: str, until: int | None, signed_by: str | None) -> CommandAnswer:
    """Show the digest of an output: recomputed from its files, or as recorded.

    OUT is a folder of results, whose rows are read, or one with a folder for each output. Of a
    CHECKPOINT it is what the newest manifest has. Equal digests mean equal rows in equal order,
    however they were cut into batches.
    """
    if signed_by is not None:
        return _signed(place, until, signed_by)
    found = recorded(place, until)
    if found is None:
        span, places = EventSpan(to_us=until), outputs_in(place) or {"": place}
        found = {name: checked_digest(at, span).to_dict() for name, at in places.items()}
    lines = [digest_line(name, of) for name, of in found.items()]
    return CommandAnswer({"digests": found}, lambda: "\n".join(lines))


def _signed(place: str, until: int | None, signed_by: str) -> CommandAnswer:
    if until is not None:
        remedy = "Leave one of them out: a link has signed all rows up to it."
        raise OptionError(SIGNED_BY, "cannot be used with --until", "both", remedy)
    first, head = signed_ends(place, PublicKey.of_file(signed_by, SIGNED_BY))
    found = {name: {"rows": of.rows, "digest": of.digest} for name, of in head.outputs.items()}
    lines = [signed_line(first.batch, head.batch, head.digest)]
    lines += [digest_line(name, of) for name, of in found.items()]
    facts = {"digests": found, "first": first.batch, "batch": head.batch, "link": head.digest}
    return CommandAnswer(facts, lambda: "\n".join(lines))


def recorded(place: str, until: int | None) -> dict[str, dict[str, object]] | None:
    """The digests recorded in a checkpoint, by output; None if the place is not a checkpoint."""
    store = Store.open(place)
    if store.meta() is None:
        return None
    kept = store.kept()
    if not kept or not kept[-1].digests:
        got = "no batch yet" if not kept or kept[-1].batch < 0 else "one of an earlier version"
        remedy = "Give its --out instead: the digest is recomputed there."
        raise CheckpointError(place, "must have recorded a digest", got, remedy)
    manifest = kept[-1]
    if until is None:
        return {name: dict(of) for name, of in manifest.digests.items()}
    span = EventSpan(to_us=until)
    return {name: digest_of(uri, span).to_dict() for name, uri in manifest.places.items()}
