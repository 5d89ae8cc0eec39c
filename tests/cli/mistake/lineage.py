"""Mistakes in `--lineage`, and keys in the URIs of all options."""

from __future__ import annotations

from tests.cli.mistake.kind import RIDES, Mistake

_AWS = (
    "Leave it out, and have it in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in "
    "~/.aws/credentials."
)

MISTAKES = {
    "--lineage of another scheme": Mistake(
        message=(
            "--lineage: must be a file, or a URL of http or https; got kafka://host/topic. "
            "Write lineage.jsonl or http://host:5000."
        ),
        options=(*RIDES, "--lineage", "kafka://host/topic"),
    ),
    "--lineage without a server": Mistake(
        message=("--lineage: a URL must name a server; got http:///api. Write http://host:5000."),
        options=(*RIDES, "--lineage", "http:///api"),
    ),
    "--lineage in a folder that is not there": Mistake(
        message=(
            "--lineage: must be in a folder that exists; got no folder nowhere. Make it first."
        ),
        options=(*RIDES, "--lineage", "nowhere/l.jsonl"),
    ),
    "--lineage with a folder": Mistake(
        message="--lineage: must be a file or a URL; got the folder empty. Add a name.",
        options=(*RIDES, "--lineage", "empty"),
    ),
    "--lineage empty": Mistake(
        message="--lineage: must be a file or a URL; got ''. Add a name.",
        options=(*RIDES, "--lineage", ""),
    ),
    "--lineage with a key": Mistake(
        message=(
            "--lineage: a URI must be without keys and passwords; got https://me:...@host. "
            "Leave it out, and have it in OPENLINEAGE_API_KEY."
        ),
        options=(*RIDES, "--lineage", "https://me:secret@host"),
    ),
    "--lineage-every alone": Mistake(
        message="--lineage-every: needs --lineage; got none. Give --lineage, a file or a URL.",
        options=(*RIDES, "--lineage-every", "1 hour"),
    ),
    "--lineage-every often": Mistake(
        message=(
            "--lineage-every: a duration must be a number and a unit; got 'often'. "
            'Write for example "15 minutes" or "500 ms".'
        ),
        options=(*RIDES, "--lineage", "l.jsonl", "--lineage-every", "often"),
    ),
    "--out with a key": Mistake(
        message=(
            f"--out: a URI must be without keys and passwords; got s3://key:...@bucket/x. {_AWS}"
        ),
        options=(*RIDES, "--out", "s3://key:secret@bucket/x"),
    ),
    "--stream with a password": Mistake(
        message=(
            "stream rides, postgresql://me:...@db/shop?table=t: a URI must be without keys and "
            "passwords; got postgresql://me:...@db/shop?table=t. Leave it out, and have it in "
            "PGPASSWORD, or in ~/.pgpass."
        ),
        options=("--stream", "rides=postgresql://me:secret@db/shop?table=t", "--time", "rides=ts"),
    ),
    "--checkpoint with a key": Mistake(
        message=(
            "checkpoint s3://key:...@bucket/x: a URI must be without keys and passwords; got "
            f"s3://key:...@bucket/x. {_AWS}"
        ),
        options=(*RIDES, "--checkpoint", "s3://key:secret@bucket/x"),
    ),
}
