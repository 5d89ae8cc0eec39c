"""The page of a report in a real browser: what it shows, who can use it, what it does not run."""

from __future__ import annotations

import json
import re
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import HOSTILE, _reported
from tests.browser.sight import barriers, colours, opened
from tidegate.driver.report.side import disorder_text
from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.request import ScaleEvenly
from tidegate.elastic.simulated_query import SimulatedLoad, SimulatedQuery

SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
LOOKED_AT = ((0, 3), (1, 2))


def batches(checkpoint: Path) -> list[dict[str, Any]]:
    lines = (checkpoint / "journal" / "00000000.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_fits_the_screen(
    browser: Browser, straggler: str, sampled: str, width: int, scheme: Any
) -> None:
    """Each page is looked at by axe-core in two of the four ways, together in all."""
    for i, url in enumerate((straggler, sampled)):
        with opened(browser, url, width, scheme) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(13, 17, 23)") == (scheme == "dark")
            if SCREENS.index((width, scheme)) in LOOKED_AT[i]:
                assert barriers(page) == []


def test_a_straggler_is_named(browser: Browser, slowed: Path, straggler: str) -> None:
    last = batches(slowed)[-15:]
    work = dict.fromkeys(range(3), 0.0)
    for batch in last:
        for task in batch["tasks"]:
            work[task["instance"]] += task["spans_ms"].get("instance process", 0.0)
    slowest = max(work, key=work.__getitem__)
    with opened(browser, straggler) as page:
        said = page.inner_text("#findings-list")
        found = re.search(r"Instance (\d) of process is the slowest: ([\d.]+) times", said)
        assert found, said
        assert int(found[1]) == slowest
        assert float(found[2]) > 1.5
        assert re.search(r"Serial \d+ percent of the time", said)


def test_each_picture_is_drawn(browser: Browser, slowed: Path, straggler: str) -> None:
    done = batches(slowed)
    with opened(browser, straggler) as page:
        expect(page.locator("#state")).to_have_text("finished")
        expect(page.locator("#figures")).to_contain_text("3,000")
        expect(page.locator("#legend li")).to_have_count(10)
        assert colours(page, "#stream-picture canvas") > 10
        assert colours(page, "#buckets-picture canvas") > 4
        expect(page.locator("#lines-picture .uplot")).to_have_count(4)
        expect(page.locator("#switches tbody tr")).to_have_count(1)
        expect(page.locator("#switches tbody")).to_contain_text("4 to 3")
        expect(page.locator("#plan-picture .node")).to_have_count(3)
        expect(page.locator("#plan-picture")).to_contain_text("rows/s")
        expect(page.locator("#control button")).to_have_count(0)
        expect(page.locator("#control")).to_contain_text("nothing to control")
        assert page.get_attribute("body", "data-drawn") == str(done[-1]["batch"])


def test_the_pointer_tells_of_a_block(browser: Browser, straggler: str) -> None:
    with opened(browser, straggler) as page:
        box = page.locator("#stream-picture canvas").bounding_box()
        assert box is not None
        left, top, width, height = (box[side] for side in ("x", "y", "width", "height"))
        wanted = [r"^instance \d of process, batch \d+\ninstance \w+: ", r"rows in, .* out, CPU"]
        for x, y in product(range(100, int(width), 5), range(10, int(height), 20)):
            page.mouse.move(left + x, top + y)
            said = page.locator(".tip").text_content() or ""
            wanted = [words for words in wanted if not re.search(words, said)]
            if not wanted:
                break
        assert wanted == []


def test_the_keyboard_is_enough(browser: Browser, slowed: Path, straggler: str) -> None:
    newest = batches(slowed)[-1]["batch"]
    with opened(browser, straggler) as page:
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.tagName"))
            if reached[-1].lower() == "canvas":
                page.keyboard.press("ArrowLeft")
                page.keyboard.press("ArrowLeft")
                caption = page.locator("#stream-details caption")
                expect(caption).to_contain_text(f"Batch {newest - 2} at")
                expect(page.locator("#stream-details tbody tr")).to_have_count(4)
                page.keyboard.press("Home")
                expect(caption).to_contain_text("Batch 0 at")
            if page.evaluate("document.activeElement.dataset.node !== undefined"):
                page.keyboard.press("Enter")
                expect(page.locator("#plan-details h3")).to_have_text("process")
                break
        assert {"A", "SELECT", "INPUT", "CANVAS", "g"} <= set(reached)


def test_texts_are_never_html(
    browser: Browser, slowed: Path, straggler: str, tmp_path: Path
) -> None:
    """Neither what queries and rows have, nor what somebody has written into a journal."""
    copy = tmp_path / "ckpt"
    shutil.copytree(slowed, copy)
    for file in (copy / "journal").iterdir():
        changed = re.sub(r'\bprocess\b(?=")', json.dumps(HOSTILE)[1:-1], file.read_text())
        file.write_text(changed.replace("</", "<\\/") + ("" if changed.endswith("\n") else "\n"))
    for url, name in ((straggler, "process"), (_reported(copy), HOSTILE)):
        with opened(browser, url) as page:
            expect(page.locator("img")).to_have_count(0)
            for place in ("#answers", "#switches"):
                expect(page.locator(place)).to_contain_text(HOSTILE)
            expect(page.locator("#findings")).to_contain_text(f"of {name} is the slowest")
            expect(page.locator("#plan-details h3")).to_have_text(name)


def test_answers_have_their_error(browser: Browser, sampled: str) -> None:
    with opened(browser, sampled) as page:
        answers = page.locator("#answers-body")
        rows = answers.locator("table").first.locator("tbody tr")
        expect(rows).to_have_count(4)
        expect(answers.locator("svg[aria-label^=between]")).to_have_count(4)
        expect(rows.first).to_contain_text("sampled")
        expect(answers).to_contain_text("widest error")


def test_late_rows_have_their_remedy(browser: Browser, sampled: str) -> None:
    with opened(browser, sampled) as page:
        status = page.evaluate(
            "JSON.parse(document.getElementById('data').textContent).status['0']"
        )
        needed = disorder_text(status["late"]["sales"]["disorder_us"])
        late = page.locator("#late-body")
        expect(late).to_contain_text(f"DISORDER {needed}")
        expect(late).to_contain_text("Newest late rows of sales")
        expect(late).to_contain_text("'oops' is not a double")
        expect(late.locator(".uplot")).to_have_count(1)


def test_a_summary_shows_the_steps_of_the_run(
    browser: Browser, slowed: Path, tmp_path: Path
) -> None:
    status = json.loads((slowed / "journal" / "status.json").read_text())
    summary = tmp_path / "summary.json"
    summary.write_text(json.dumps({name: status[name] for name in status.keys() - {"plan"}}))
    with opened(browser, _reported(summary)) as page:
        steps = page.locator("#stream-details")
        expect(steps).to_contain_text("instance process")
        expect(steps).to_contain_text("process 2")
        expect(page.locator("#stream-picture")).to_be_hidden()
        expect(page.locator("#plan")).to_contain_text("not known")
        assert barriers(page) == []


def test_the_target_is_a_line_and_decisions_have_what_came_of_them(
    browser: Browser, slowed: Path, tmp_path: Path
) -> None:
    """Decisions of a simulated query, in the journal of a run."""
    copy = tmp_path / "ckpt"
    shutil.copytree(slowed, copy)
    file = copy / "journal" / "status.json"
    status = json.loads(file.read_text())
    told = decided()
    budget = {"instances": 8, "queries": 2, "held": 4, "wanted": 6, "leaves": 4}
    policy = {"name": "auto", "failure": None, "remark": None, **told}
    file.write_text(json.dumps({**status, "policy": policy, "budget": budget}))
    with opened(browser, _reported(copy)) as page:
        latency = page.locator("#lines-picture h3", has_text="Latency")
        expect(latency).to_contain_text("target 2 s")
        expect(latency).to_contain_text("p99 measured")
        drawn = page.locator("#lines-picture .uplot[aria-label^=Latency]")
        assert "target" in (drawn.get_attribute("aria-label") or "")
        decisions = page.locator("#decisions")
        expect(decisions).to_contain_text("Target: latency 2 s for 99 in 100 tuples, 9 instances")
        expect(decisions).to_contain_text("It wanted 6, the budget leaves 4.")
        expect(decisions.locator("tbody tr")).to_have_count(len(told["decisions"]))
        expect(decisions.locator("tbody")).to_contain_text("shed: no error is allowed")
        expect(decisions.locator("tbody")).to_contain_text("holds")
        assert barriers(page) == []
    with opened(browser, _reported(slowed)) as page:
        expect(page.locator("#decisions")).to_be_hidden()
        expect(page.locator("#lines-picture")).not_to_contain_text("target")


def decided() -> dict[str, Any]:
    """What `auto` says of a query whose load rose and fell."""
    work = np.repeat([2.0, 7.0, 2.0], [20, 30, 40])
    load = SimulatedLoad(tuples=work * 1000, work_s=work)
    policy, memory = ByTarget(latency="2 seconds", cost=9), dict[str, Any]()
    state = SimulatedQuery(load=load).start(3)
    while not state.over:
        state, batch = state.step()
        decision = policy.decide((batch.observed,), memory)
        memory = dict(decision.memory)
        for request in decision.requests:
            assert isinstance(request.change, ScaleEvenly)
            state = state.scaled(request.change.instances)
    told = policy.told(memory)
    assert len(told["decisions"]) >= 2
    return dict(json.loads(json.dumps(told)))


@pytest.mark.long
def test_ten_thousand_batches_of_32_instances_fit(
    browser: Browser, slowed: Path, tmp_path: Path
) -> None:
    """What is kept of older batches is numbers; 150 MB is the bar, a tenth of it the rule."""
    whole = batches(slowed)[-1]
    tasks = [{**whole["tasks"][i % 3], "instance": i} for i in range(32)]
    copy = tmp_path / "ckpt"
    shutil.copytree(slowed, copy)
    for first in range(0, 10_000, 500):
        lines = [
            json.dumps({**whole, "batch": n, "at": whole["at"] + n, "tasks": tasks})
            for n in range(first, first + 500)
        ]
        (copy / "journal" / f"{first:08d}.jsonl").write_text("\n".join(lines))
    with opened(browser, _reported(copy)) as page:
        assert page.get_attribute("body", "data-drawn") == "9999"
        page.select_option("#stream-tools select", "300")
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        used = session.send("Runtime.getHeapUsage")
        assert used["usedSize"] + used["backingStorageSize"] < 30e6
