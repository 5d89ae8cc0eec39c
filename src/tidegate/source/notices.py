"""Notices of the kernel about names that come to local folders and leave them.

Listing a folder costs as much as it holds; being told costs as much as has happened. Linux tells
(inotify), and all of it only where no other host writes: on file systems that are local.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import weakref
from typing import NamedTuple

_CREATED, _MOVED_IN, _DELETED, _MOVED_OUT = 0x100, 0x80, 0x200, 0x40
_SELF_DELETED, _SELF_MOVED, _IGNORED = 0x400, 0x800, 0x8000
_ONLY_FOLDERS, _LOST = 0x01000000, 0x4000
_WANTED = _CREATED | _MOVED_IN | _DELETED | _MOVED_OUT | _SELF_DELETED | _SELF_MOVED | _ONLY_FOLDERS
_HEADER = struct.Struct("iIII")
_READ_BYTES = 1 << 16

_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010, 0x2FC12FC1})
"""ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS, by what `statfs` calls them."""


class Notice(NamedTuple):
    """A name that came to a folder or left it; no name where the folder itself went away."""

    folder: str
    name: str
    came: bool


class Notices:
    """Tells of names in the folders it follows, from the moment on in which it follows them."""

    def __init__(self, libc: ctypes.CDLL, descriptor: int) -> None:
        self._libc = libc
        self._descriptor = descriptor
        self._folders: dict[int, str] = {}
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls) -> Notices | None:
        """None where the system does not tell, or has told too many already."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return cls(libc, descriptor) if descriptor >= 0 else None

    def follow(self, folder: str) -> bool:
        """Begin to tell of a folder; False where not all would be told."""
        path = os.fsencode(folder or ".")
        status = ctypes.create_string_buffer(1024)
        if self._libc.statfs(path, status) != 0:
            return False
        kind = int.from_bytes(status.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)
        if kind not in _LOCAL:
            return False
        number = self._libc.inotify_add_watch(self._descriptor, path, _WANTED)
        if number >= 0:
            self._folders[number] = folder
        return bool(number >= 0)

    def take(self) -> list[Notice] | None:
        """What has happened since it was last asked, in order; None where some of it was lost."""
        notices: list[Notice] = []
        complete = True
        while data := self._read():
            at = 0
            while at < len(data):
                number, mask, _, length = _HEADER.unpack_from(data, at)
                name = data[at + _HEADER.size : at + _HEADER.size + length].rstrip(b"\0")
                at += _HEADER.size + length
                complete &= not mask & _LOST
                if number in self._folders:
                    came = bool(mask & (_CREATED | _MOVED_IN))
                    notices.append(Notice(self._folders[number], os.fsdecode(name), came))
                if mask & (_IGNORED | _SELF_MOVED) and self._folders.pop(number, None) is not None:
                    self._libc.inotify_rm_watch(self._descriptor, number)
        return notices if complete else None

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""
