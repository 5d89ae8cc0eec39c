"""Signing, checking and switching over with input, output and checkpoint on an S3 server."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.pem import write_keys
from tests.s3.server import Server
from tidegate.cli.main import invoke

CREATE = "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM '{}' TIME ts;\n"
OLD = "SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS] GROUP BY k;"
NEW = "SELECT k, SUM(v) AS total FROM s [RANGE 20 SECONDS] WHERE v > 2 GROUP BY k;"


class Bucket:
    """A query with everything in one folder of the bucket."""

    def __init__(self, server: Server, path: str) -> None:
        self.folder = server.folder / path
        (self.folder / "in").mkdir(parents=True)
        self.uri = server.uri
        self._path = path
        create = CREATE.format(self.place("in"))
        for name, text in (("old", OLD), ("new", NEW)):
            Path(f"{name}.sql").write_text(create + text)
        write_keys("mine")
        write_keys("other")

    def place(self, name: str) -> str:
        return self.uri(f"{self._path}/{name}")

    def add(self, name: str, first: int, last: int) -> None:
        """A file with a tuple a second."""
        lines = (
            f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z,{'abc'[i % 3]},{i % 17}\n"
            for i in range(first, last)
        )
        (self.folder / "in" / f"{name}.csv").write_text("ts,k,v\n" + "".join(lines))

    def run(self, query: str, *more: str, names: tuple[str, str] = ("ck", "out")) -> int:
        words = f"run {query}.sql --master none --available-now --batch-rows 70".split()
        places = [self.place(name) for name in names]
        return invoke([*words, "--checkpoint", places[0], "--out", places[1], *more])

    def rows(self, name: str = "out") -> list[dict[str, object]]:
        parts = sorted((self.folder / name).glob("batch=*/*.parquet"))
        return [row for part in parts for row in pq.read_table(part).to_pylist()]


@pytest.fixture
def bucket(server: Server, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.chdir(tmp_path)
    made = Bucket(server, path)
    made.add("a", 0, 300)
    return made


def said(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    capsys.readouterr()
    assert invoke(words) == code
    found = capsys.readouterr()
    return found.out + found.err


def test_batches_are_signed_and_checked(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    assert bucket.run("old", "--sign", "mine.pem") == 0
    links = sorted((bucket.folder / "ck" / "chain").iterdir())
    check = ["verify", bucket.place("ck"), "--signed-by", "mine.pub"]
    assert "87 rows, 5 files as signed" in said(capsys, 0, *check)
    assert "must be given; got none for" in said_of_run(bucket, capsys)
    bucket.add("b", 300, 400)
    assert bucket.run("old", "--sign", "other.pem") == 2
    last = links[-1].read_bytes()
    links[-1].unlink()  # as if the run had been killed before it wrote the link
    assert bucket.run("old", "--sign", "mine.pem") == 0
    assert links[-1].read_bytes() == last
    assert "files as signed" in said(capsys, 0, *check)
    part = sorted((bucket.folder / "out").glob("batch=*/*.parquet"))[1]
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    assert "other bytes than were signed" in said(capsys, 1, *check)


def said_of_run(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert bucket.run("old") == 2
    return capsys.readouterr().err


def test_a_checkpoint_is_switched_over_and_back(
    bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bucket.run("old") == 0
    before = bucket.rows()
    words = ["--batch-rows", "40", "--json"]
    switch = ["compare", bucket.place("ck"), "new.sql", "--cutover", bucket.place("kept")]
    assert json.loads(said(capsys, 0, *switch, *words))["switched"]
    bucket.add("b", 300, 600)
    assert bucket.run("new") == 0
    assert bucket.run("new", names=("ck-new", "out-new")) == 0
    after = [row for row in bucket.rows("out-new") if row["window_end"] > before[-1]["window_end"]]  # type: ignore[operator]
    assert bucket.rows() == [*before, *after]
    assert len(after) > 20
    assert "equal" in said(capsys, 0, "verify", bucket.place("ck"))
    back = ["compare", bucket.place("ck"), "old.sql", "--begin", bucket.place("kept")]
    facts = json.loads(said(capsys, 0, *back, "--cutover", bucket.place("kept-new"), *words))
    assert facts["switched"]
    count = len(bucket.rows())
    bucket.add("c", 600, 700)
    assert bucket.run("old") == 0
    assert bucket.run("old", names=("ck-old", "out-old")) == 0
    assert bucket.rows()[count:] == bucket.rows("out-old")[-30:]
