"""A checkpoint of an earlier format goes on to the rows it went on to then, or is refused."""

from __future__ import annotations

import json
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from tests.checkpoints.keep import KEPT, ROWS_FILE
from tests.checkpoints.query import QUERIES, run, write_half, write_tables
from tidegate.errors import CheckpointError, StateError

ATTRIBUTES = "the state must be of this version, which keeps attributes whole"

PARTNERS = r"with what has changed(.|\n)*\+ keys that the other side does not have are shed first"

REFUSED: dict[tuple[str, str], str] = {
    ("0.1.0-a", "balanced"): "the state of aggregate was made with what has changed",
    ("0.1.0-a", "process"): ATTRIBUTES,
    ("0.1.0-b", "process"): ATTRIBUTES,
    ("0.1.0-a", "shed"): "the state of aggregate does not have what represents groups",
    ("0.1.0-b", "shed"): "the state of aggregate does not have what represents groups",
    ("0.1.0-c", "shed"): "the state of aggregate does not have what represents groups",
    ("0.1.0-a", "shed_join"): "the state of join was made with what has changed",
    ("0.1.0-b", "shed_join"): PARTNERS,
    ("0.1.0-c", "shed_join"): PARTNERS,
    ("0.1.0-a", "window_process"): "the state of aggregate does not have process",
    ("0.1.0-a", "within_error"): "the state of aggregate does not have sample",
}
"""By format and query: what the one sentence says where a checkpoint cannot be continued."""

ARCHIVES = sorted(KEPT.glob("*/*.zip"))


def test_each_kind_of_state_is_kept_in_the_newest_format_and_those_since_it_is_there() -> None:
    formats = sorted({a.parent for a in ARCHIVES})
    kinds = [{a.stem for a in each.iterdir()} for each in formats]
    assert kinds[-1] == set(QUERIES)
    assert kinds[0]
    assert all(older <= newer for older, newer in pairwise(kinds))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda a: f"{a.parent.name}-{a.stem}")
def test_a_kept_checkpoint(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for stream in "lr":
        write_half(tmp_path, stream, 0)
        write_half(tmp_path, stream, 1)
    write_tables(tmp_path, "changed since")
    with zipfile.ZipFile(archive) as kept:
        kept.extractall(tmp_path)
    refusal = REFUSED.get((archive.parent.name, archive.stem))
    if refusal is not None:
        with pytest.raises((CheckpointError, StateError), match=refusal):
            run(archive.stem, tmp_path)
        return
    wanted = json.loads((tmp_path / ROWS_FILE).read_text(encoding="utf-8"))
    assert wanted
    rows = run(archive.stem, tmp_path, instances=2)
    assert json.loads(json.dumps(rows, default=str)) == wanted
