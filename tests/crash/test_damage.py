"""Files that are damaged, missing or of another run: what the user reads, and what is left."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.crash.command import HALF, Command, Scenery
from tests.crash.folder import contents, difference, facts
from tests.crash.process import wait_for
from tests.crash.site import Golden, Site
from tests.seed import SEED

Halfway = Callable[..., Scenery]
Damage = Callable[[Path], None]

NEWEST = f"batch={HALF - 1:08d}"


def flip(path: Path) -> None:
    """One bit in the middle."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def refused(scenery: Scenery, code: int, lines: int = 1, **changed: object) -> str:
    """Run, expect so many lines of error with this code, no change to any file; what it says."""
    places = (scenery.checkpoint, scenery.out)
    before = [_that_counts(p) for p in places]
    found, message = scenery.run(**changed)
    assert found == code, message
    assert message.startswith("tidegate: ")
    assert len(message.splitlines()) == lines
    for place, held in zip(places, before, strict=True):
        assert difference(_that_counts(place), held) == []
    return message


def _that_counts(place: Path) -> dict[str, bytes]:
    """Without the empty folder that tasks of the killed run had: any start removes it."""
    found = contents(place).items()
    return {name: data for name, data in found if not name.startswith("_staging/tasks-")}


def goes_on(scenery: Scenery, golden: Callable[..., Golden]) -> None:
    code, message = scenery.run()
    assert code == 0, message
    assert difference(contents(scenery.out), golden(scenery.scene.name).files) == []


@pytest.mark.parametrize("damage", [flip, cut_short, empty, remove])
def test_a_damaged_segment(
    damage: Damage, halfway: Halfway, golden: Callable[..., Golden], command: Command
) -> None:
    scenery = halfway()
    manifest = json.loads((scenery.checkpoint / "manifest" / f"{HALF - 1:08d}.json").read_text())
    name = manifest["operators"]["aggregate/panes"][0]["name"]
    segment = scenery.checkpoint / "segment" / f"{name}.arrow"
    whole = segment.read_bytes()
    damage(segment)
    message = _refused_later(scenery) if damage is flip else refused(scenery, 1)
    assert message.startswith(f"tidegate: {segment}: must ")
    assert "Restore the file from a copy, or restart from an empty checkpoint" in message
    told = command.output("state", scenery.checkpoint, "--verify", code=1)
    assert "1 damaged" in told
    assert str(segment) in told
    segment.write_bytes(whole)
    assert "checked: all are whole" in command.output("state", scenery.checkpoint, "--verify")
    goes_on(scenery, golden)


def _refused_later(scenery: Scenery) -> str:
    """Damage that only the checksum shows is found when the segment is read, in some batch."""
    manifests = contents(scenery.checkpoint / "manifest")
    seen = contents(scenery.out)
    code, message = scenery.run()
    assert code == 1, message
    assert len(message.splitlines()) == 1
    kept = {k: v for k, v in contents(scenery.out).items() if k in seen}
    assert difference(kept, seen) == []
    assert sorted(contents(scenery.checkpoint / "manifest"))[-1] >= sorted(manifests)[-1]
    return message


@pytest.mark.parametrize("damage", [flip, cut_short, empty])
def test_the_newest_manifest_damaged(
    damage: Damage, halfway: Halfway, golden: Callable[..., Golden], command: Command
) -> None:
    scenery = halfway()
    newest = scenery.checkpoint / "manifest" / f"{HALF - 1:08d}.json"
    whole = newest.read_bytes()
    damage(newest)
    message = refused(scenery, 1)
    assert message.startswith(f"tidegate: {newest}: must be as it was written; got ")
    assert "Restore the file from a copy" in message
    code, told = command("state", scenery.checkpoint)
    assert code == 1
    assert str(newest) in told
    newest.write_bytes(whole)
    goes_on(scenery, golden)


def test_the_manifest_before_it_damaged(halfway: Halfway, golden: Callable[..., Golden]) -> None:
    """The newer one is enough, and the message says so."""
    scenery = halfway()
    older = scenery.checkpoint / "manifest" / f"{HALF - 2:08d}.json"
    flip(older)
    message = refused(scenery, 1)
    assert message.startswith(f"tidegate: {older}: ")
    assert message.endswith("delete this file and restart.")
    older.unlink()
    goes_on(scenery, golden)


@pytest.mark.parametrize("damage", [flip, empty])
def test_meta_damaged(damage: Damage, halfway: Halfway, golden: Callable[..., Golden]) -> None:
    scenery = halfway()
    meta = scenery.checkpoint / "meta.json"
    whole = meta.read_bytes()
    damage(meta)
    message = refused(scenery, 1)
    assert message.startswith(f"tidegate: {meta}: must be as it was written")
    meta.write_bytes(whole)
    goes_on(scenery, golden)


def test_meta_missing(halfway: Halfway, golden: Callable[..., Golden]) -> None:
    scenery = halfway()
    meta = scenery.checkpoint / "meta.json"
    whole = meta.read_bytes()
    meta.unlink()
    message = refused(scenery, 2)
    assert "must have its meta.json" in message
    assert "Restore the file, or start from an empty checkpoint." in message
    meta.write_bytes(whole)
    goes_on(scenery, golden)


def test_the_checkpoint_of_another_query(halfway: Halfway, golden: Callable[..., Golden]) -> None:
    scenery = halfway()
    text = scenery.query.read_text()
    scenery.query.write_text(text.replace("SLIDE 20 SECONDS", "SLIDE 30 SECONDS"))
    message = refused(scenery, 2, lines=5)
    assert str(scenery.checkpoint) in message
    assert "must be the checkpoint of this query" in message
    assert "+ window RANGE 1 minute SLIDE 30 seconds" in message
    assert "Use another --checkpoint" in message
    scenery.query.write_text(text)
    goes_on(scenery, golden)


def test_another_number_of_buckets(halfway: Halfway, golden: Callable[..., Golden]) -> None:
    scenery = halfway()
    message = refused(scenery, 2, buckets=32)
    assert "was made with 16 buckets" in message
    assert "Use --buckets 16, or another --checkpoint." in message
    goes_on(scenery, golden)


@pytest.mark.parametrize("step", ["after operate", "after commit"])
def test_two_runs_at_once(
    step: str, command: Command, make_site: Callable[..., Site], golden: Callable[..., Golden]
) -> None:
    """The second must not take what the first has not committed yet for left-overs of a crash."""
    site = make_site("aggregate")
    go = site.out.parent / "go"
    fault = {"kind": "pause", "step": step, "batch": HALF, "file": str(go)}
    pid = site.nursery.start({**site.request, "fault": fault})
    wait_for(site.out.with_name("go.reached").exists, "the first run is in its batch")
    scenery = Scenery(command, "aggregate", site.out.parent, Path(site.request["inputs"]))
    try:
        message = refused(scenery, 2)
    finally:
        go.touch()
        status = site.nursery.wait()
    assert message.startswith(f"tidegate: {site.checkpoint}: must be used by one run at a time")
    assert f"got one that process {pid} uses. Wait until it has ended, or stop it" in message
    assert status == 0, site.log.read_text()
    assert difference(contents(site.out), golden("aggregate").files) == []


def test_a_new_run_into_the_results_of_another(
    halfway: Halfway, golden: Callable[..., Golden], tmp_path: Path
) -> None:
    scenery = halfway()
    message = refused(scenery, 2, checkpoint=tmp_path / "new")
    assert message.startswith(f"tidegate: {scenery.out}: a new run needs an output folder without")
    assert "continue with its --checkpoint" in message
    for batch in scenery.out.glob("batch=*"):
        shutil.rmtree(batch)
    assert "batches of an earlier run (_late/batch=" in refused(
        scenery, 2, checkpoint=tmp_path / "new"
    )
    assert not (tmp_path / "new").exists()


def test_a_continued_run_into_another_folder(
    halfway: Halfway, golden: Callable[..., Golden], tmp_path: Path
) -> None:
    """Half of the results here and half there would be read as the whole."""
    scenery = halfway()
    message = refused(scenery, 2, out=tmp_path / "elsewhere")
    assert f"must have the results of this checkpoint, up to {NEWEST}; got no " in message
    assert "Continue with the --out of the earlier run" in message
    goes_on(scenery, golden)


def test_a_continued_run_into_a_folder_with_batches_beyond(
    halfway: Halfway, golden: Callable[..., Golden]
) -> None:
    scenery = halfway()
    foreign = scenery.out / "batch=00000011"
    foreign.mkdir()
    message = refused(scenery, 2)
    assert "got batch=00000011 of another run" in message
    foreign.rmdir()
    goes_on(scenery, golden)


def test_results_that_were_moved_away_on_purpose(
    halfway: Halfway, golden: Callable[..., Golden]
) -> None:
    """As the message says, an empty folder in place of the newest batch lets the run go on."""
    scenery = halfway()
    for batch in scenery.out.glob("batch=*"):
        shutil.rmtree(batch)
    assert f"make an empty folder {NEWEST}" in refused(scenery, 2)
    (scenery.out / NEWEST).mkdir()
    code, message = scenery.run()
    assert code == 0, message
    expected = golden("aggregate").files
    later = {k: v for k, v in expected.items() if k.startswith("batch=") and k > NEWEST + "~"}
    found = {k: v for k, v in contents(scenery.out).items() if k.startswith("batch=")}
    assert {k: v for k, v in found.items() if k in later} == later


def test_results_that_wait_to_be_shown_are_not_lost_to_another_folder(
    command: Command,
    make_site: Callable[..., object],
    golden: Callable[..., Golden],
    tmp_path: Path,
) -> None:
    site = make_site("aggregate")
    assert site.run(kind="step", step="after commit", batch=HALF)
    scenery = Scenery(command, "aggregate", site.out.parent, Path(site.request["inputs"]))
    assert f"up to batch={HALF:08d}; got no" in refused(scenery, 2, out=tmp_path / "elsewhere")
    goes_on(scenery, golden)


def vanish(path: Path) -> None:
    """All that was staged, not just one part."""
    shutil.rmtree(path.parent.parent)


@pytest.mark.parametrize(
    ("damage", "batch"),
    [(cut_short, 0), *((d, HALF) for d in (flip, cut_short, empty, remove, vanish))],
)
def test_staged_output_that_is_damaged_before_it_is_published(
    damage: Damage,
    batch: int,
    command: Command,
    make_site: Callable[..., Site],
    golden: Callable[..., Golden],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was published as it was, and every check said that all was well."""
    site = make_site("aggregate")
    assert site.run(kind="step", step="after commit", batch=batch)
    (part,) = site.out.glob(f"_staging/batch={batch:08d}*/part-*")
    verify = ("state", site.checkpoint, "--verify")
    assert "checked: staged, all are whole" in command.output(*verify)
    damage(part)
    told = command.output(*verify, code=1)
    assert "damaged before it was published, so that it will run again" in told
    assert f"\n{part}: " in told
    scenery = Scenery(command, "aggregate", site.out.parent, Path(site.request["inputs"]))
    code, message = scenery.run()
    assert code == 0, message
    assert "checked: published, as committed" in command.output(*verify)
    (warned,) = caplog.messages
    assert warned.startswith(f"{part}: a part of a committed batch must be whole until it is pub")
    assert warned.endswith(f"Batch {batch} runs again, from the state before it.")
    assert difference(contents(site.out), golden("aggregate").files) == []
    assert facts(site.checkpoint)["state"] == golden("aggregate").facts["state"]
    assert facts(site.checkpoint)["unreferenced"] == []


def test_a_batch_runs_again_to_where_it_ended_with_any_options(
    command: Command, make_site: Callable[..., Site], golden: Callable[..., Golden]
) -> None:
    """Killed on the way, and with other batches and instances: it has the rows that it had."""
    site = make_site("whole")
    assert site.run(kind="step", step="after commit", batch=HALF)
    (part,) = site.out.glob(f"_staging/batch={HALF:08d}*/part-*")
    cut_short(part)
    assert site.run(kind="step", step="before commit", batch=HALF)
    scenery = Scenery(command, "whole", site.out.parent, Path(site.request["inputs"]))
    code, message = scenery.run(batch_rows=31, instances=1)
    assert code == 0, message
    found, whole = contents(site.out), golden("whole").files
    settled = [n for n in whole if int(n.partition("batch=")[2][:8]) <= HALF]
    assert {n: found.get(n) for n in settled} == {n: whole[n] for n in settled}
    rows = [b"".join(f[k] for k in sorted(f) if k.startswith("batch=")) for f in (found, whole)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", ["aggregate", "top"])
def test_killed_again_and_again_while_a_batch_runs_again(
    name: str, make_site: Callable[..., Site]
) -> None:
    """Before any change to a file on the way: the next start comes to the same conclusion."""
    chance = random.Random(f"runs again {name} {SEED}")
    site = make_site(name)
    assert site.run(kind="step", step="after commit", batch=HALF)
    (part,) = site.out.glob(f"_staging/batch={HALF:08d}*/part-*")
    flip(part)
    kills = 0
    for _ in range(40 if LONG else 4):
        kills += site.run(kind="change", change=chance.randrange(1, 30))
        site.check_now()
    assert kills >= 3
    site.finish()
