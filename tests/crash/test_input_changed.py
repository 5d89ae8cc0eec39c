"""Inputs that were removed, cut or replaced between two runs: told before anything is done."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.crash.command import HALF, Command, Scenery
from tests.crash.folder import contents, difference
from tests.crash.scene import TIME
from tests.crash.site import Golden, Site
from tests.crash.test_damage import refused
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import SourceError
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.folder.files import FileSink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store


@pytest.fixture
def own_inputs(
    command: Command, make_site: Callable[..., Site], tmp_path: Path
) -> Callable[[str], tuple[Scenery, Path]]:
    """A scene killed halfway whose inputs belong to the test."""

    def of(name: str) -> tuple[Scenery, Path]:
        site = make_site(name)
        inputs = tmp_path / "inputs"
        shutil.copytree(site.request["inputs"], inputs)
        site.request["inputs"] = str(inputs)
        assert site.run(kind="step", step="before gate", batch=HALF)
        Store.open(str(site.checkpoint)).clean()
        shutil.rmtree(site.out / "_staging")
        return Scenery(command, name, site.out.parent, inputs), inputs

    return of


@pytest.mark.parametrize("name", ["a.parquet", "b.csv", "c.json"])
@pytest.mark.parametrize("scene", ["aggregate", "stateless"])
def test_a_file_is_gone(scene: str, name: str, own_inputs, golden: Callable[..., Golden]) -> None:
    scenery, inputs = own_inputs(scene)
    (inputs / name).rename(inputs / "away")
    message = refused(scenery, 2)
    assert f"{inputs / name}: the file or folder must be there" in message
    (inputs / "away").rename(inputs / name)
    _finishes(scenery, golden)


def test_a_file_of_a_folder_is_gone(own_inputs, golden: Callable[..., Golden]) -> None:
    """One that was being read; of those that were read to the end nothing is needed any more."""
    scenery, inputs = own_inputs("top")
    reading = inputs / "many" / "1-1.parquet"
    reading.rename(inputs / "away")
    message = refused(scenery, 2)
    assert message.startswith(f"tidegate: {reading}: was read up to row ")
    assert "Put it back, or start from an empty checkpoint." in message
    (inputs / "away").rename(reading)
    _finishes(scenery, golden)


@pytest.mark.parametrize("name", ["a.parquet", "b.csv", "c.json"])
@pytest.mark.parametrize("scene", ["aggregate", "stateless"])
def test_a_file_became_shorter_than_what_was_read(
    scene: str, name: str, own_inputs, golden: Callable[..., Golden]
) -> None:
    scenery, inputs = own_inputs(scene)
    whole = (inputs / name).read_bytes()
    if name == "a.parquet":
        pq.write_table(pq.read_table(inputs / name).slice(0, 50), inputs / name)
    else:
        (inputs / name).write_bytes(b"\n".join(whole.splitlines()[:50]) + b"\n")
    message = refused(scenery, 2)
    assert message.startswith(f"tidegate: {inputs / name}: was read up to row ")
    assert "Put it back as it was, or start from an empty checkpoint." in message
    (inputs / name).write_bytes(whole)
    _finishes(scenery, golden)


@pytest.mark.parametrize("name", ["a.parquet", "b.csv", "c.json"])
def test_a_file_of_as_many_rows_took_its_place(
    name: str, own_inputs, golden: Callable[..., Golden]
) -> None:
    scenery, inputs = own_inputs("aggregate")
    whole = (inputs / name).read_bytes()
    if name == "a.parquet":
        rows = pq.read_table(inputs / name)
        pq.write_table(rows.take([1, 0, *range(2, rows.num_rows)]), inputs / name)
    else:
        lines = whole.splitlines(keepends=True)
        lines[1], lines[2] = lines[2], lines[1]
        (inputs / name).write_bytes(b"".join(lines))
    message = refused(scenery, 2)
    assert message.startswith(f"tidegate: {inputs / name}: was read up to row ")
    assert "must be the same up to there; got " in message
    (inputs / name).write_bytes(whole)
    _finishes(scenery, golden)


def _finishes(scenery: Scenery, golden: Callable[..., Golden]) -> None:
    """Side outputs name the files they came from, and these inputs lie elsewhere."""
    code, message = scenery.run()
    assert code == 0, message
    found, expected = contents(scenery.out), golden(scenery.scene.name).files
    assert sorted(found) == sorted(expected)
    plain = [{k: v for k, v in f.items() if k.startswith("batch=")} for f in (found, expected)]
    assert difference(*plain) == []


def test_tuples_that_wait_need_their_file_though_it_was_read_to_the_end(
    command: Command, tmp_path: Path
) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    rows = {"a": ([0, 9], [1, 2]), "b": ([1, 10, 40], [3, 4, 5])}
    for name, (seconds, values) in rows.items():
        times = pa.array([s * 1_000_000 for s in seconds]).cast(TIME)
        pq.write_table(pa.table({"ts": times, "v": values}), inputs / f"{name}.parquet")
    text = f"CREATE STREAM s FROM '{inputs}' TIME ts DISORDER 10 SECONDS; SELECT v FROM s;"
    script = read_script(text)
    plan = plan_for(bind(script, streams_of(script)), Place("none"))
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"

    def loop() -> Loop:
        options = RunOptions(batch_rows=4)
        return prepare(plan, Place("none"), {None: FileSink(out, "json")}, options, str(checkpoint))

    first = loop()
    first.step()
    first.close()
    saved = {Path(s["id"]).name: s for s in first.manifest.sources}
    assert saved["a.parquet"]["ended"]
    assert saved["a.parquet"]["waiting_from"] < saved["a.parquet"]["position"]
    (inputs / "a.parquet").rename(tmp_path / "away")
    with pytest.raises(SourceError, match=r"a\.parquet: was read up to row 2 .* and must be there"):
        loop()
    (tmp_path / "away").rename(inputs / "a.parquet")
    loop().run()
    lines = [line for p in sorted(out.glob("batch=*/*")) for line in p.read_text().splitlines()]
    assert [json.loads(line)["v"] for line in lines] == [1, 3, 2, 4, 5]
