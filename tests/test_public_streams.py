"""Public originals become streams: times in UTC and in order, with where they are from."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.docs.block import ROOT

MINUTES = [datetime(2023, 7, 1, 8, minute) for minute in (5, 1)]
"""Wall clock of New York in summer, four hours behind UTC, and not in order."""


@pytest.fixture(scope="module")
def public() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module("public_streams")
    sys.path.remove(str(ROOT / "benchmarks"))


def _tlc(folder: Path) -> Path:
    zones = {"PULocationID": [7, 8], "DOLocationID": [9, 9]}
    amounts = {key: [1.5, 2.5] for key in ("trip_distance", "fare_amount", "total_amount")}
    times = {"lpep_pickup_datetime": MINUTES, "lpep_dropoff_datetime": MINUTES}
    pq.write_table(pa.table(times | zones | amounts), folder / "green.parquet")
    return folder / "green.parquet"


def _google(folder: Path) -> Path:
    lines = ["660000000,,11,0,u1,2,j1,name=", "600000000,,12,4,u2,3,j2,other="]
    with gzip.open(folder / "part.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    return folder / "part.csv.gz"


def _debs(folder: Path) -> Path:
    ride = "M{n},H,2013-07-01 08:0{n}:00,2013-07-01 08:0{n}:00,1,2,-73.9,40.7,-73.8,40.6,CSH"
    lines = [f"{ride.format(n=n)},10,0,0.5,0,0,10.5" for n in (5, 1)]
    (folder / "rides.csv").write_text("\n".join(lines) + "\n")
    return folder / "rides.csv"


def _packets(folder: Path) -> Path:
    lines = ["1483228880.434993,10.0.0.1,10.0.0.2,1514", "1483228879.434992,10.0.0.2,10.0.0.1,60"]
    (folder / "capture.csv").write_text("\n".join(lines) + "\n")
    return folder / "capture.csv"


def _taq(folder: Path) -> Path:
    lines = ["Time|Exchange|Symbol|Trade Volume|Trade Price"]
    lines += ["080500000001000|N|IBM|100|141.5", "080100000001000|N|AIG|50|48.25", "END|2|||"]
    with gzip.open(folder / "EQY_US_ALL_TRADE_20230701.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    return folder / "EQY_US_ALL_TRADE_20230701.gz"


def _at(minute: int, microsecond: int = 0) -> datetime:
    return datetime(2023, 7, 1, 12, minute, 0, microsecond, UTC)


START = datetime(2011, 5, 1, 23, 0, tzinfo=UTC)
SECOND = datetime(2017, 1, 1, 0, 1, 19, 434992, UTC)
CASES = {
    "tlc": (_tlc, [_at(1), _at(5)], {"pu_zone": [8, 7], "total_amount": [2.5, 1.5]}),
    "google": (_google, [START, START.replace(minute=1)], {"job_id": [12, 11]}),
    "debs": (
        _debs,
        [datetime(2013, 7, 1, 12, n, tzinfo=UTC) for n in (1, 5)],
        {"medallion": ["M1", "M5"], "total_amount": [10.5, 10.5]},
    ),
    "packets": (
        _packets,
        [SECOND, SECOND.replace(second=20, microsecond=434993)],
        {"size": [60, 1514]},
    ),
    "taq": (_taq, [_at(1, 1), _at(5, 1)], {"symbol": ["AIG", "IBM"], "price": [48.25, 141.5]}),
}


@pytest.mark.parametrize("kind", CASES)
def test_an_original_becomes_a_stream_in_the_order_of_its_times(
    public: Any, kind: str, tmp_path: Path
) -> None:
    write, times, columns = CASES[kind]
    source = write(tmp_path)
    told = public.convert(kind, [source], tmp_path / "made")
    of = public.ORIGINALS[kind]
    rows = pq.read_table(tmp_path / "made" / f"{of.stream}.parquet")
    assert rows[of.time].to_pylist() == times
    assert {name: rows[name].to_pylist() for name in columns} == columns
    known = json.loads((tmp_path / "made" / "PROVENANCE.json").read_text())
    assert known == {f"{of.stream}.parquet": told}
    assert list(told["originals"]) == [source.name]
    assert (told["rows"], told["dropped_without_time"]) == (2, 0)


def test_each_kind_has_a_case(public: Any) -> None:
    assert sorted(CASES) == sorted(public.ORIGINALS)
