"""The input of the benchmarks, as Parquet files that are written once and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START_US = 1_704_067_200_000_000


def write_events(
    folder: Path, rows: int, file_rows: int, keys: int, per_second: int, seed: int = 7
) -> None:
    """Events of Zipf-distributed keys in files of equal size, in time order.

    Files that are there already stay; the same call writes the same bytes.
    """
    done = folder / "_done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    bounds = zipf_bounds(keys)
    for number, first in enumerate(range(0, rows, file_rows)):
        count = min(file_rows, rows - first)
        place = np.arange(first, first + count)
        table = pa.table(
            {
                "ts": pa.array(
                    START_US + place * 1_000_000 // per_second, pa.timestamp("us", "UTC")
                ),
                "key": np.searchsorted(bounds, generator.random(count)).astype(np.int64),
                "value": generator.normal(100, 15, count),
            }
        )
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
    done.touch()


def zipf_bounds(keys: int) -> np.ndarray[Any, Any]:
    """Where the ranks of Zipf's law with exponent 1.1 end on the line from 0 to 1."""
    weights = 1 / np.arange(1, keys + 1) ** 1.1
    return np.cumsum(weights / weights.sum())


BAND_COLUMNS = {"r": ("ts", "x", "y"), "s": ("ts", "a", "b")}


def write_band(folder: Path, rows: int, per_second: int, domain: int) -> None:
    """The streams of ScaleJoin's benchmark, r.parquet and s.parquet: x, a whole, y, b real."""
    from tidegate.source.generator import open_generator

    done = folder / "_done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in BAND_COLUMNS.items():
        uri = f"generator:{name}?rows={rows}&rate={per_second}&seed=4&domain={domain}"
        source = open_generator(uri, name, "ts")
        with pq.ParquetWriter(
            folder / f"{name}.parquet",
            pa.schema([source.schema.field(c) for c in columns]),
            use_dictionary=False,
        ) as writer:
            for start in range(0, rows, 2**17):
                stop = min(start + 2**17, rows)
                writer.write_table(source.reader(start, stop).read(columns).table)
    done.touch()


def write_keyed(folder: Path, rows: int, file_rows: int, keys: int) -> None:
    """Two folders of files, left and right: a row a millisecond, keys uniform, a value."""
    done = folder / "_done"
    if done.exists():
        return
    for side, name in enumerate(("left", "right")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng([11, side])
        for number, first in enumerate(range(0, rows, file_rows)):
            count = min(file_rows, rows - first)
            ts = START_US + np.arange(first, first + count) * 1_000
            table = pa.table(
                {
                    "ts": pa.array(ts, pa.timestamp("us", "UTC")),
                    "key": generator.integers(0, keys, count),
                    "value": generator.normal(100, 15, count),
                }
            )
            pq.write_table(table, folder / name / f"part-{number:05d}.parquet")
    done.touch()


def write_many_files(folder: Path, files: int, rows: int) -> Path:
    """Files of equal size that follow each other in time, ten rows a second; the folder of them.

    Small on disk: their times differ by one step, and the value is always the same.
    """
    target = folder / f"files-{files}x{rows}"
    done = folder / f"files-{files}x{rows}.done"
    if done.exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    values = pa.array(np.ones(rows, np.int64))
    for number in range(files):
        times = START_US + (number * rows + np.arange(rows)) * 100_000
        table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "v": values})
        pq.write_table(
            table,
            target / f"part-{number:06d}.parquet",
            use_dictionary=["v"],
            column_encoding={"ts": "DELTA_BINARY_PACKED"},
            store_schema=False,
        )
    done.touch()
    return target


def write_text(folder: Path, format_: str, rows: int) -> Path:
    """One file of events in time order, ten a second, as CSV or as lines of JSON."""
    target = folder / f"events-{rows}.{format_}"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    times = pa.array(START_US + np.arange(rows) * 100_000, pa.timestamp("us"))
    texts = times.cast(pa.string()).to_pylist()
    partial = target.with_suffix(".partial")
    with partial.open("w") as file:
        if format_ == "csv":
            file.write("ts,v,name\n")
        for number, text in enumerate(texts):
            row = f"{text},{number % 7},event {number % 100}"
            line = f'{{"ts":"{text}","v":{number % 7},"name":"event {number % 100}"}}'
            file.write(f"{row if format_ == 'csv' else line}\n")
    partial.rename(target)
    return target
