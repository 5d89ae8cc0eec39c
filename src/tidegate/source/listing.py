"""Which files a path, a folder or a glob stands for, between a URI and the formats."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlparse

from tidegate import disk
from tidegate.errors import SourceError, likely
from tidegate.source.unpack import NONE, SUFFIXES

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
_TEXTS = ("csv", "json")
_COMPRESSED = (*SUFFIXES, ".xz", ".zip", ".lz4", ".snappy")


@dataclass(frozen=True)
class Found:
    """A file and its format; the path is as given, so it names the source wherever it is run."""

    path: str
    format: str


def local_path(uri: str, where: str) -> str:
    """The local path of a plain path or a file URI."""
    if not uri.lower().startswith("file:"):
        return uri
    parsed = urlparse(uri)
    if parsed.netloc not in ("", "localhost"):
        raise SourceError(
            where,
            "a file URI must name a file on this machine",
            uri,
            "Write it as file:///path, or as a plain path.",
        )
    return unquote(parsed.path)


def list_files(
    path: str, where: str, follow: bool, look: Callable[[], Iterable[str]]
) -> list[Found]:
    """The files of a path as sources, sorted by name; at least one, all of one format.

    `look` gives the files there are now below a folder or for a glob. A path that exists is meant
    as it stands, also where it has characters of a glob in it.
    """
    if isinstance(path, disk.RemotePath):
        return _list_remote(path, where, follow, look)
    if disk.is_file(path):
        return [Found(path, format_of(path, where))]
    if disk.is_folder(path):
        kind, verb = "folder", "hold"
    elif glob.has_magic(path):
        kind, verb = "glob", "match"
    else:
        got = f"nothing at {path}"
        raise SourceError(where, "the file or folder must be there", got, _neighbours(path))
    paths = sorted(look(), key=name_order)
    if not paths:
        got = f"none in {path}" if kind == "folder" else f"none for {path}"
        raise _no_files(where, f"the {kind} must {verb} a file at least", got)
    return _of_one_format(paths, where, follow)


def _list_remote(
    path: disk.RemotePath, where: str, follow: bool, look: Callable[[], Iterable[str]]
) -> list[Found]:
    """The same where a folder is what its files have in front of their names, and no more."""
    if disk.is_file(path):
        return [Found(path, format_of(path, where))]
    paths = sorted(look(), key=name_order)
    if not paths:
        raise _no_files(where, "a file must be there, or below it", f"none at {path}")
    return _of_one_format(paths, where, follow)


def _no_files(where: str, requirement: str, got: str) -> SourceError:
    names = f"Names must end in {', '.join(FORMATS)}, and not begin with . or _."
    return SourceError(where, requirement, got, names)


def is_of_format(path: str, format_: str) -> bool:
    """Whether a file that came later is of the format of the first ones."""
    return _known_format(path) == format_


def name_order(path: str) -> str:
    """A key that sorts paths folder by folder: what is in `a/` comes before what is in `a-b/`."""
    return path.replace(os.sep, "\0")


def format_of(path: str, where: str) -> str:
    """The format that a file's extension stands for."""
    found = _known_format(path)
    if found is None:
        packed = _extension(path) in _COMPRESSED
        raise SourceError(
            where,
            f"a file's name must end in {', '.join(FORMATS)}",
            path,
            "Unpack it first: only text is read as it is from .gz, .zst and .bz2."
            if packed
            else "Rename it to say its format.",
        )
    return found


def _known_format(path: str) -> str | None:
    """The format that a name stands for; only text may be compressed as a whole."""
    plain, last = os.path.splitext(path)
    if last.lower() not in SUFFIXES:
        return FORMATS.get(last.lower())
    found = FORMATS.get(_extension(plain))
    return found if found in _TEXTS else None


def packing_of(path: str, told: str | None) -> str:
    """How a text file is compressed: as an option tells, or by the ending of its name."""
    return told or SUFFIXES.get(_extension(path), NONE)


def _of_one_format(paths: list[str], where: str, follow: bool) -> list[Found]:
    found = [Found(p, f) for p in paths if (f := _known_format(p)) is not None]
    if len(found) < len(paths) and not (follow and found):
        format_of(next(p for p in paths if _known_format(p) is None), where)
    other = next((f for f in found if f.format != found[0].format), None)
    if other is not None:
        raise SourceError(
            where,
            "all files must be of one format",
            f"{found[0].path} and {other.path}",
            f"Name the ones you mean with a glob, as *{_extension(other.path)}.",
        )
    return found


def paths_of(path: str) -> list[str]:
    """The files below a folder or for a glob, in no order."""
    return _walk(path) if disk.is_folder(path) else _match(path)


def _walk(folder: str) -> list[str]:
    """The files below a folder, nested ones too, without hidden ones and those with a leading _."""
    found = []
    try:
        for parent, folders, files in disk.current().walk(folder):
            folders[:] = [f for f in folders if counts(f)]
            found += [os.path.join(parent, f) for f in files if counts(f)]
    except OSError as error:
        raise SourceError(
            folder,
            "the folder and all in it must be readable",
            error.strerror or str(error),
            "Give access, or name the files that are meant with a glob.",
        ) from error
    return found


def _match(pattern: str) -> list[str]:
    found: set[str] = set()
    for path in disk.current().matching(pattern):
        if disk.is_folder(path):
            found.update(_walk(path))
        elif counts(os.path.basename(path)):
            found.add(path)
    return list(found)


def counts(name: str) -> bool:
    """Whether a file or folder of this name is input: not hidden, and no side output."""
    return not name.startswith((".", "_"))


def _extension(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _neighbours(path: str) -> str:
    """What there is where a missing path was looked for."""
    parent = os.path.dirname(path) or "."
    if not disk.is_folder(parent):
        return f"There is no folder {parent}."
    folder = "The current folder" if parent == "." else f"The folder {parent}"
    names = sorted(n for n in disk.current().names(parent) if counts(n))
    if not names:
        return f"{folder} is empty."
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else ".")
    return f"{likely(os.path.basename(path), names)} {folder} holds {listed}".lstrip()
