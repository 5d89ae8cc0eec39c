"""Lists the files that a path, a folder or a glob stands for, and finds their format."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Callable, Iterable
from urllib.parse import unquote, urlparse

from tidegate.errors import SourceError, likely
from tidegate.source.format import FileFormat
from tidegate.source.registry import FORMATS, format_named
from tidegate.source.text.compression import SUFFIXES
from tidegate.storage import disk

_COMPRESSED = (*SUFFIXES, ".xz", ".zip", ".lz4", ".snappy")


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
) -> tuple[FileFormat, list[str]]:
    """The one format of a path's files, and the files, at least one, sorted by name.

    `look` gives the files that are now below a folder or match a glob. A path that exists is taken
    literally, even with glob characters in it. Paths stay as given, not absolute: they name the
    sources, which must have the same names wherever the query runs.
    """
    if disk.is_file(path):
        return format_of(path, where), [path]
    if isinstance(path, disk.RemotePath):  # there a folder is only a prefix of names
        requirement, got = "a file must be there, or below it", f"none at {path}"
    elif disk.is_folder(path):
        requirement, got = "the folder must hold a file at least", f"none in {path}"
    elif glob.has_magic(path):
        requirement, got = "the glob must match a file at least", f"none for {path}"
    else:
        got = f"nothing at {path}"
        raise SourceError(where, "the file or folder must be there", got, _neighbours(path))
    paths = sorted(look(), key=name_order)
    if not paths:
        names = f"Names must end in {', '.join(FORMATS)}, and not begin with . or _."
        raise SourceError(where, requirement, got, names)
    return _of_one_format(paths, where, follow)


def name_order(path: str) -> str:
    """A sort key that keeps folders together: files of `a/` come before those of `a-b/`."""
    return path.replace(os.sep, "\0")


def format_of(path: str, where: str) -> FileFormat:
    """The format that a file's extension stands for."""
    found = format_named(path)
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


def _of_one_format(paths: list[str], where: str, follow: bool) -> tuple[FileFormat, list[str]]:
    found = [(path, format_) for path in paths if (format_ := format_named(path)) is not None]
    if len(found) < len(paths) and not (follow and found):
        format_of(next(p for p in paths if format_named(p) is None), where)
    (first, format_), *_ = found
    other = next((p for p, f in found if f != format_), None)
    if other is not None:
        raise SourceError(
            where,
            "all files must be of one format",
            f"{first} and {other}",
            f"Name the ones you mean with a glob, as *{_extension(other)}.",
        )
    return format_, [path for path, _ in found]


def paths_of(path: str) -> list[str]:
    """The files below a folder or for a glob, in no order."""
    return _walk(path) if disk.is_folder(path) else _match(path)


def _walk(folder: str) -> list[str]:
    """The files below a folder at any depth, without names that begin with . or _."""
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


def split_glob(path: str) -> tuple[str, list[str]]:
    """Split a glob into the folder before the first wildcard and the patterns behind it."""
    parts = path.split("/")
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(parts[:first]), parts[first:]


def name_matches(name: str, pattern: str) -> bool:
    """Whether a pattern matches a name; only a pattern with a leading . matches hidden names."""
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, pattern)


def counts(name: str) -> bool:
    """Whether a file or folder of this name is input: neither hidden nor a side output."""
    return not name.startswith((".", "_"))


def _extension(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _neighbours(path: str) -> str:
    """A sentence about the names that are where a missing path was expected."""
    parent = os.path.dirname(path) or "."
    if not disk.is_folder(parent):
        return f"There is no folder {parent}."
    folder = "The current folder" if parent == "." else f"The folder {parent}"
    names = sorted(n for n in disk.current().names(parent) if counts(n))
    if not names:
        return f"{folder} is empty."
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else ".")
    return f"{likely(os.path.basename(path), names)} {folder} holds {listed}".lstrip()
