"""The errors of sinks of files, in the same words for a folder and for an object store."""

from __future__ import annotations

from tidegate.errors import LostOutputError, OptionError, SinkError

CHANGED = "%s: is published, and is not what was committed: %s. It stays as it is."
"""A warning, not an error: a published batch belongs to its readers and is never changed."""


def results_there(folder: str, first: str) -> OptionError:
    """A new run needs a folder without results: readers would take the old ones for its own."""
    return OptionError(
        folder,
        "a new run needs an output folder without results",
        f"batches of an earlier run ({first})",
        "Choose another --out, delete the folder, or continue with its --checkpoint.",
    )


def results_beyond(folder: str, last: str, beyond: str) -> OptionError:
    """The folder of a restart must have no results beyond the newest batch."""
    return OptionError(
        folder,
        f"must have the results of this checkpoint, up to {last}",
        f"{beyond} of another run",
        "Continue with the --out of the earlier run, or move those batches away.",
    )


def results_missing(folder: str, last: str, more: str = "") -> OptionError:
    """The folder of a restart must have the results of the checkpoint."""
    return OptionError(
        folder,
        f"must have the results of this checkpoint, up to {last}",
        f"no {last}",
        f"Continue with the --out of the earlier run, or start from an empty checkpoint{more}.",
    )


def other_format(folder: str, there: str, asked: str) -> OptionError:
    """All results of a folder must have one format."""
    return OptionError(
        "--format",
        f"must be that of the results in {folder}, {there}",
        asked,
        f"Use --format {there}, or another --out and --checkpoint.",
    )


def too_early(place: str, what: str, remedy: str) -> SinkError:
    """Something else is in the place of a batch that is not published yet."""
    return SinkError(place, "must not be there before its batch is published", what, remedy)


def part_lost(path: str, got: str, more: str = "") -> LostOutputError:
    """A committed part was lost or changed before it was published: the batch runs again."""
    must = "a part of a committed batch must be whole until it is published"
    return LostOutputError(path, must, got, f"Put it back from a copy{more}.")
