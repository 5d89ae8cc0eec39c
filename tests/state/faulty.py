"""A file system that stops at a chosen step, between the store under test and pyarrow's own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSystem, FileSystemHandler, PyFileSystem


class Crash(BaseException):
    """The process is gone: no handler of ours may run, so it is no Exception."""


class Steps:
    """Counts the steps that change something; the chosen one fails, and all after it."""

    def __init__(self, fail_at: int | None = None, error: BaseException | None = None) -> None:
        self.fail_at = fail_at
        self.error = error or Crash()
        self.count = 0
        self.kinds: Counter[str] = Counter()

    def take(self, kind: str) -> None:
        self.kinds[kind] += 1
        step, self.count = self.count, self.count + 1
        if self.fail_at is not None and step >= self.fail_at:
            raise self.error


class _TornStream:
    """Gives the file half of what is written before it fails."""

    closed = False

    def __init__(self, stream: pa.NativeFile, steps: Steps) -> None:
        self._stream = stream
        self._steps = steps

    def write(self, data: bytes) -> int:
        try:
            self._steps.take("write")
        except BaseException:
            self._stream.write(bytes(data)[: len(data) // 2])
            self._stream.close()
            raise
        self._stream.write(data)
        return len(data)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        pass

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        if not self._stream.closed:
            self._stream.close()


class FaultyHandler(FileSystemHandler):
    """Passes everything on to another file system, step by counted step."""

    def __init__(self, fs: FileSystem, steps: Steps) -> None:
        self.fs = fs
        self.steps = steps

    def get_type_name(self) -> str:
        return "faulty"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = FileSystemHandler.__hash__

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Any) -> Any:
        self.steps.kinds["info"] += 1
        return self.fs.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        self.steps.kinds["list"] += 1
        return self.fs.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        self.steps.take("create_dir")
        self.fs.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self.steps.take("delete_dir")
        self.fs.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self.steps.take("delete")
        self.fs.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self.steps.take("move")
        self.fs.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.fs.open_input_stream(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return self.fs.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        self.steps.take("create")
        return pa.PythonFile(_TornStream(self.fs.open_output_stream(path), self.steps), "w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        raise NotImplementedError


def faulty(fs: FileSystem, steps: Steps) -> FileSystem:
    """The same files as `fs`, under the control of `steps`."""
    return PyFileSystem(FaultyHandler(fs, steps))
