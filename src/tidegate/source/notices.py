"""Receives notices of the kernel (inotify) about names that come to and leave local folders.

Listing a folder costs O(names in it); notices cost O(changes). The kernel reports only changes made
on this host, so notices are used for local file systems alone.
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
"""The `statfs` magic numbers of ext2 to ext4, XFS, Btrfs, tmpfs, F2FS and ZFS."""


class Notice(NamedTuple):
    """A name that came to a folder or left it; "" where the folder itself was removed or moved."""

    folder: str
    name: str
    came: bool


class Notices:
    """The changes of names in some folders, each from the call of `follow` on."""

    def __init__(self, libc: ctypes.CDLL, descriptor: int) -> None:
        self._libc = libc
        self._descriptor = descriptor
        self._folders: dict[int, str] = {}
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls) -> Notices | None:
        """None where the system has no inotify, or its limit of instances is reached."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return cls(libc, descriptor) if descriptor >= 0 else None

    def follow(self, folder: str) -> bool:
        """Begin to report changes in a folder; False where some would not be reported."""
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
        """The notices since the last call, in order; None where the kernel lost some."""
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
                # A moved folder stays watched by its inode: it would report its old path.
                if mask & (_IGNORED | _SELF_MOVED) and self._folders.pop(number, None) is not None:
                    self._libc.inotify_rm_watch(self._descriptor, number)
        return notices if complete else None

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""
