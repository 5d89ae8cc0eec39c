"""Runs that need much memory, in a process that gets no more than it may: they end, or say why.

The system refuses the process more private memory than CAP_BYTES (RLIMIT_DATA), so what does not
keep to `--memory-limit` fails here with an error of an allocator.
"""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.memory import bytes_of

CAP_BYTES = 2 * 2**30
LIMIT = "300MB"
LINE_BYTES = 64 * 2**20

STREAMS = """
CREATE STREAM l FROM 'l.parquet' TIME ts;
CREATE STREAM r FROM 'r.parquet' TIME ts;
"""
PAIRS = "SELECT l.v AS a, r.v AS b, l.k AS k, r.k AS j FROM l [RANGE 1 HOUR] JOIN r [RANGE 1 HOUR] "
JOINS = {
    "equality": PAIRS + "ON l.k = r.k",
    "band": PAIRS + "ON ABS(l.v - r.v) <= 30000",
    "scan": PAIRS + "ON l.v * r.v >= 0",
}
KEYS = """
CREATE STREAM s FROM 'keys.parquet' TIME ts;
SELECT k, COUNT(*) AS n, MAX(v) AS m, MEDIAN(v) AS d FROM s [RANGE 1 HOUR] GROUP BY k
"""
TEXT = """
CREATE STREAM s FROM '{uri}' TIME ts;
SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k
"""
LOOKED_UP = """
CREATE STREAM l FROM 'l.parquet' TIME ts;
CREATE TABLE t FROM 't.parquet';
SELECT l.k, t.w FROM l LEFT JOIN t ON l.k = t.id
"""
PROCESS = """
import sys
import tidegate as tg
from tidegate.errors import TidegateError

class Repeat(tg.Process):
    output = {"text": "string"}

    def on_tuple(self, row, keys):
        for number in range(100):
            yield {"text": f"{row.v}-{number}" * 100}

if __name__ == "__main__":
    stream = tg.Session(master="none").stream("l.parquet", time="ts")
    rows = stream.process(Repeat, keys="k")
    try:
        rows.start(sink="o", memory_limit=sys.argv[1]).wait()
    except TidegateError as error:
        print(f"tidegate: {error}", file=sys.stderr)
        sys.exit(1)
"""


def side(folder: Path, name: str, rows: int, keys: int) -> None:
    numbers = np.arange(rows)
    columns = {
        "ts": pa.array(numbers * 1000, pa.timestamp("us")),
        "k": pa.array(numbers % keys),
        "v": pa.array(numbers.astype(float)),
    }
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def capped(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run in a process that gets no more memory of its own than CAP_BYTES."""
    return subprocess.run(
        ["prlimit", f"--data={CAP_BYTES}", sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def run(sql: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "q.sql").write_text(sql)
    command = ["-m", "tidegate", "run", "q.sql", "--master", "none", "--out", "o"]
    return capped([*command, "--memory-limit", LIMIT, *more], folder)


def check_told(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """It has ended well, or with one line that names what needed the memory, and a remedy."""
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
    if done.returncode == 1:
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("tidegate: ")
        assert "--memory-limit" in last
        assert all(word in last for word in words), last


@pytest.mark.parametrize("name", JOINS)
def test_a_join_of_many_pairs_in_one_batch_needs_memory_for_pieces_only(
    name: str, tmp_path: Path
) -> None:
    """Sixteen million pairs took two to four gigabytes as one table."""
    many = 8_000 if name == "equality" else 4_000
    for part in ("l", "r"):
        side(tmp_path, part, many, keys=4)
    sizes = ("--batch-rows", "1000000", "--memory-limit", "360MB")  # some are for compiled loops
    done = run(STREAMS + JOINS[name], tmp_path, *sizes)
    assert done.returncode == 0, done.stderr
    assert "did not fit into memory" not in done.stderr
    files = sorted((tmp_path / "o").glob("batch=*/part-*.parquet"))
    rows = sum(pq.ParquetFile(f).metadata.num_rows for f in files)
    assert rows == many * many // (4 if name == "equality" else 1)
    assert len(files) > 4


@pytest.mark.parametrize("order", ["", " ORDER BY d DESC, k"])
def test_very_many_groups(order: str, tmp_path: Path) -> None:
    side(tmp_path, "keys", 500_000, keys=450_000)
    done = run(KEYS + order, tmp_path)
    check_told(done, "aggregate", "batch ")


def test_a_process_that_makes_many_rows(tmp_path: Path) -> None:
    side(tmp_path, "l", 2_500, keys=50)
    (tmp_path / "p.py").write_text(PROCESS)
    check_told(capped(["p.py", LIMIT], tmp_path), "process", "batch ")


def test_a_table_that_is_larger_than_the_limit_is_read_by_key(tmp_path: Path) -> None:
    """Its rows alone are more than the process may hold, and with an index three times as many."""
    rows = np.random.default_rng(7).permutation(2_500_000)
    others = {f"u{part}": rows / part for part in range(3, 17)}
    table = pa.table({"id": 3 * rows, "w": rows / 2, **others})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2**18, compression="none")
    side(tmp_path, "l", 50_000, keys=30_000)
    done = run(LOOKED_UP, tmp_path, "--batch-rows", "20000", "--checkpoint", "c")
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "o").glob("batch=*/part-*.parquet"))
    found = pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])
    assert found.column("k").to_pylist() == [n % 30_000 for n in range(50_000)]
    wanted = [None if k % 3 else k / 6 for k in found.column("k").to_pylist()]
    assert found.column("w").to_pylist() == wanted
    parts = list((tmp_path / "c" / "table").iterdir())
    assert len(parts) > 16
    assert sum(part.stat().st_size for part in parts) > table.nbytes > bytes_of(LIMIT, "")


def csv_line(path: Path, opened: Callable[[Path], object]) -> None:
    with opened(path) as file:  # type: ignore[attr-defined]
        file.write(b"ts,k\n2024-01-01T00:00:00Z,a\n2024-01-01T00:00:01Z,")
        for _ in range(LINE_BYTES // 2**20):
            file.write(b"x" * 2**20)
        file.write(b"\n")


def json_line(path: Path, opened: Callable[[Path], object]) -> None:
    with opened(path) as file:  # type: ignore[attr-defined]
        file.write(b'{"ts": "2024-01-01T00:00:00Z", "k": "a"}\n')
        file.write(b'{"ts": "2024-01-01T00:00:01Z", "k": "')
        for _ in range(LINE_BYTES // 2**20):
            file.write(b"x" * 2**20)
        file.write(b'"}\n')


OPENED: dict[str, Callable[[Path], object]] = {
    "": lambda path: path.open("wb"),
    ".gz": lambda path: gzip.GzipFile(path, "wb", 1),
    ".zst": lambda path: pa.CompressedOutputStream(str(path), "zstd"),
}


@pytest.mark.parametrize("packing", OPENED)
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_line_that_is_too_long_names_the_file_and_the_place(
    kind: str, packing: str, tmp_path: Path
) -> None:
    """Packed it is some kilobytes: a bomb."""
    name = f"s.{kind}{packing}"
    write = csv_line if kind == "csv" else json_line
    write(tmp_path / name, OPENED[packing])
    done = run(TEXT.format(uri=name), tmp_path)
    assert done.returncode == 1
    check_told(done, name, "a line must have at most 38 MB", "got a longer one from byte ")


def test_a_packed_file_of_many_rows_is_read_in_blocks(tmp_path: Path) -> None:
    """Some megabytes unpack to hundreds."""
    with gzip.open(tmp_path / "s.csv.gz", "wb", 1) as file:
        file.write(b"ts,k\n")
        for _ in range(30):
            file.write(b"2024-01-01T00:00:00Z,a\n" * 100_000)
    done = run(TEXT.format(uri="s.csv.gz"), tmp_path, "--format", "json")
    assert done.returncode == 0, done.stderr
    (part,) = (tmp_path / "o").glob("batch=*/*.json")
    assert '"n": 3000000' in part.read_text()


def test_the_cap_is_one(tmp_path: Path) -> None:
    code = f"import numpy as np; np.ones({CAP_BYTES} // 8 + 1)"
    done = capped(["-c", code], tmp_path)
    assert "MemoryError" in done.stderr
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] != CAP_BYTES
