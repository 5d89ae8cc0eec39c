"""Signals while a loop runs."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from tests.driver.scene import COUNTS, csv, loop_of, opened, plan_of, rows_of
from tidegate.cli.live.watch import run_until_signal
from tidegate.cli.stop import Stopped
from tidegate.sink.memory import MemorySink

ROWS = [(float(second), "a", 1) for second in range(40)]


class Signalling(io.BytesIO):
    """Bytes that send a signal to this process when Arrow reads the first of them."""

    def __init__(self, data: bytes, number: int) -> None:
        super().__init__(data)
        self._number: int | None = number

    def read(self, size: int | None = -1) -> bytes:
        if self._number is not None:
            number, self._number = self._number, None
            os.kill(os.getpid(), number)
        return super().read(size)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_arrow_reads_csv_ends_it_after_the_batch(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sink = csv(tmp_path / "s.csv", *ROWS), MemorySink()
    loop = loop_of(plan_of(COUNTS), [opened(path, False)], tmp_path / "c", sink, batch_rows=10)
    read, sent = pacsv.read_csv, []

    def signalled(source: pa.NativeFile, **options: Any) -> pa.Table:
        if len(sent) < 1:
            sent.append(number)
            source = pa.PythonFile(Signalling(source.read(), number), mode="r")
        return read(source, **options)

    monkeypatch.setattr(pacsv, "read_csv", signalled)
    with pytest.raises(Stopped) as stopped:
        run_until_signal(loop)
    summary = stopped.value.summary
    assert sent == [number]
    assert not summary.finished
    assert summary.counters["rows_in"] == 10, "the batch at hand was done, and no other"

    loop = loop_of(plan_of(COUNTS), [opened(path, False)], tmp_path / "c", sink, batch_rows=10)
    assert run_until_signal(loop).finished
    assert rows_of(sink) == [(float(t), t + 10.0, "a", 10, 10) for t in range(0, 40, 10)]
