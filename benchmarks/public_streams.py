"""Converts public originals into the streams that benchmarks take by `--real FOLDER`.

    python benchmarks/public_streams.py tlc green_tripdata_2023-01.parquet ... --to FOLDER
    python benchmarks/public_streams.py google part-00000-of-00500.csv.gz ... --to FOLDER
    python benchmarks/public_streams.py debs sorted_data.csv --to FOLDER
    python benchmarks/public_streams.py packets capture.csv ... --to FOLDER
    python benchmarks/public_streams.py taq EQY_US_ALL_TRADE_20191007.gz --to FOLDER

    tlc       trip records of New York's Taxi and Limousine Commission (Parquet, green or yellow)
    google    the table job_events of Google's cluster trace of 2011 (CSV, gzipped or not)
    debs      the taxi rides of the DEBS Grand Challenge of 2015 (CSV without names)
    packets   what `tshark -T fields -E separator=, -e frame.time_epoch -e ip.src -e ip.dst
              -e frame.len` prints of any capture: CAIDA's, M-Lab's, your own
    taq       trades of the daily TAQ files of the NYSE, which you must have bought

Nothing is downloaded. Rows are sorted by time, and rows without one are dropped and counted. Beside
the stream `PROVENANCE.json` says what it was made of, with SHA-256 of each original, and when.
Where there is no original, generators have streams of the same shape: `taxi`, `tasks`, `packets`,
`trades`, each with `drift` (docs/generators.md).
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

TIME = pa.timestamp("us", "UTC")
NEW_YORK = "America/New_York"
GOOGLE_START_US = 1_304_290_800_000_000 - 600_000_000
"""Time 0 of the trace, which says that 600 seconds are 19:00 of 1 May 2011 in New York."""


@dataclass(frozen=True)
class Original:
    """The name of the stream that is made, its column of event times, and what reads a file."""

    stream: str
    time: str
    read: Callable[[Path], pa.Table]


def _local(times: Any) -> Any:
    """Wall clock of New York as UTC; an hour that comes twice is the first, one that is none is
    the next."""
    zoned = pc.assume_timezone(
        times.cast(pa.timestamp("us")), NEW_YORK, ambiguous="earliest", nonexistent="latest"
    )
    return zoned.cast(TIME)


def read_tlc(file: Path) -> pa.Table:
    rows = pq.read_table(file)
    names = {name.lower(): name for name in rows.column_names}
    first = next(n for n in names if n.endswith("pickup_datetime"))
    last = next(n for n in names if n.endswith("dropoff_datetime"))
    return pa.table(
        {
            "pickup_ts": _local(rows[names[first]]),
            "dropoff_ts": _local(rows[names[last]]),
            "pu_zone": rows[names["pulocationid"]].cast(pa.int16()),
            "do_zone": rows[names["dolocationid"]].cast(pa.int16()),
            "trip_distance": rows[names["trip_distance"]].cast(pa.float64()),
            "fare_amount": rows[names["fare_amount"]].cast(pa.float64()),
            "total_amount": rows[names["total_amount"]].cast(pa.float64()),
        }
    )


def _csv(file: Path, names: Sequence[str], kept: dict[str, pa.DataType], mark: str = ",") -> Any:
    return pcsv.read_csv(
        file,
        pcsv.ReadOptions(column_names=list(names)),
        pcsv.ParseOptions(delimiter=mark),
        pcsv.ConvertOptions(include_columns=list(kept), column_types=kept),
    )


def read_google(file: Path) -> pa.Table:
    names = (
        "time missing_info job_id event_type user scheduling_class job_name logical_job_name"
    ).split()
    whole = dict.fromkeys(("time", "job_id", "event_type", "scheduling_class"), pa.int64())
    rows = _csv(file, names, whole | {"logical_job_name": pa.string()})
    return pa.table(
        {
            "ts": pc.add(rows["time"], GOOGLE_START_US).cast(TIME),
            "job_id": rows["job_id"],
            "event_type": rows["event_type"].cast(pa.int8()),
            "scheduling_class": rows["scheduling_class"].cast(pa.int8()),
            "logical_job_name": rows["logical_job_name"],
        }
    )


def read_debs(file: Path) -> pa.Table:
    names = (
        "medallion hack_license pickup dropoff trip_time trip_distance pickup_longitude "
        "pickup_latitude dropoff_longitude dropoff_latitude payment_type fare_amount surcharge "
        "mta_tax tip_amount tolls_amount total_amount"
    ).split()
    places = [name for name in names if name.endswith("tude")]
    kept: dict[str, pa.DataType] = {"medallion": pa.string()}
    kept |= dict.fromkeys(("pickup", "dropoff"), pa.timestamp("us"))
    kept |= dict.fromkeys((*places, "fare_amount", "tip_amount", "total_amount"), pa.float64())
    rows = _csv(file, names, kept)
    times = {f"{name}_ts": _local(rows[name]) for name in ("pickup", "dropoff")}
    return pa.table(times | {n: rows[n] for n in kept if n not in ("pickup", "dropoff")})


def read_packets(file: Path) -> pa.Table:
    kept = {"time": pa.float64(), "src": pa.string(), "dst": pa.string(), "size": pa.int32()}
    rows = _csv(file, list(kept), kept)
    # Doubles hold microseconds of our century exactly enough: to a quarter of one.
    micros = pc.round(pc.multiply(rows["time"], 1e6)).cast(pa.int64())
    return rows.set_column(0, "ts", micros.cast(TIME))


def read_taq(file: Path) -> pa.Table:
    """Nanoseconds of the day as HHMMSSnnnnnnnnn, the day from the file's name."""
    (day,) = [part for part in file.name.replace(".", "_").split("_") if part.isdigit()]
    parse = pcsv.ParseOptions(delimiter="|")
    kept = {"Time": pa.string(), "Symbol": pa.string()}
    kept |= {"Trade Volume": pa.int64(), "Trade Price": pa.float64()}
    convert = pcsv.ConvertOptions(include_columns=list(kept), column_types=kept)
    rows = pcsv.read_csv(file, parse_options=parse, convert_options=convert)
    rows = rows.filter(pc.match_substring_regex(rows["Time"], r"^\d{15}$"))  # the last is a count
    parts = [
        pc.utf8_slice_codeunits(rows["Time"], start, stop).cast(pa.int64())
        for start, stop in ((0, 2), (2, 4), (4, 6), (6, 12))
    ]
    micros = parts[3]
    for part, unit in zip(parts, (3_600_000_000, 60_000_000, 1_000_000), strict=False):
        micros = pc.add(micros, pc.multiply(part, unit))
    start = int(datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC).timestamp() * 1e6)
    local = pc.add(micros, start).cast(pa.timestamp("us"))
    return pa.table(
        {
            "ts": _local(local),
            "symbol": rows["Symbol"],
            "volume": rows["Trade Volume"],
            "price": rows["Trade Price"],
        }
    )


ORIGINALS = {
    "tlc": Original("taxi_green_2023q1", "pickup_ts", read_tlc),
    "google": Original("google_job_events", "ts", read_google),
    "debs": Original("debs_2015", "dropoff_ts", read_debs),
    "packets": Original("packets", "ts", read_packets),
    "taq": Original("trades", "ts", read_taq),
}
"""The first two have the names that `partitioners.py` and `concept_drift.py` look for."""


def convert(kind: str, files: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Write the stream of some originals, and where it is from."""
    original = ORIGINALS[kind]
    rows = pa.concat_tables([original.read(file) for file in files])
    if kind == "google":
        rows = _numbered(rows)
    there = rows.filter(pc.is_valid(rows[original.time]))
    order = pc.sort_indices(there, [(original.time, "ascending")])
    target = folder / f"{original.stream}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(there.take(order), target, compression="zstd")
    told = {
        "kind": kind,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "originals": {file.name: _digest(file) for file in files},
        "rows": there.num_rows,
        "dropped_without_time": rows.num_rows - there.num_rows,
        "sha256": _digest(target),
    }
    index = folder / "PROVENANCE.json"
    known = json.loads(index.read_text()) if index.exists() else {}
    index.write_text(json.dumps(known | {target.name: told}, indent=1) + "\n")
    return told


def _numbered(rows: pa.Table) -> pa.Table:
    """Names that are hashes as numbers, in the order in which they come first."""
    codes = rows["logical_job_name"].combine_chunks().dictionary_encode()
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    place = rows.column_names.index("logical_job_name")
    return rows.set_column(place, "logical_job_name_id", codes.indices.cast(pa.int32()))


def _digest(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=ORIGINALS)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER")
    asked = parser.parse_args()
    told = convert(asked.kind, asked.files, asked.to)
    print(f"{told['rows']:,} rows, {told['dropped_without_time']:,} without a time dropped")


if __name__ == "__main__":
    main()
