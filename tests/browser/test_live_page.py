"""The page of a query that runs: its figures move, and a person with the token steers it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import tidegate as tg
from tests.browser.sight import barriers, opened
from tests.session.test_query import until
from tidegate.dashboard.guard import TOKEN

SECRET = "a-token-of-the-tests"
NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


class LiveQuery:
    """A query that counts, and sheds where it is told to, and a source that the test fills."""

    def __init__(self, checkpoint: Path) -> None:
        self._source = tg.MemorySource(self._rows(0), time="ts")
        stream = tg.Session(master="none").stream(self._source, time="ts", name="rides")
        counted = stream.window("1 second").group_by("key").agg(n=tg.count()).shed(up_to=0.9)
        self.query = counted.start(
            sink=tg.sink.memory(), checkpoint=str(checkpoint), instances=2, dashboard=True
        )
        self._batches = 1
        until(lambda: self.query.status()["batch"] == 0, self.query)

    def _rows(self, batch: int) -> list[dict[str, object]]:
        at = NEW_YEAR + timedelta(seconds=10 * batch)
        return [{"ts": at + timedelta(milliseconds=i), "key": f"k{i % 7}"} for i in range(500)]

    def batch(self) -> None:
        self._source.append(self._rows(self._batches))
        until(lambda: self.query.status()["batch"] == self._batches, self.query)
        self._batches += 1


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveQuery]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(TOKEN, SECRET)
    made = LiveQuery(tmp_path / "c")
    yield made
    made.query.stop()


def newest(page: Page) -> None:
    """Choose the query that was started last."""
    chosen = page.locator("#queries a, #queries button")
    if chosen.count():
        chosen.last.click()


def test_figures_move_and_a_button_scales(browser: Browser, live: LiveQuery) -> None:
    with opened(browser, str(live.query.dashboard)) as page:
        newest(page)
        expect(page.locator("#state")).to_have_text("running")
        expect(page.locator("#figures")).to_contain_text("500")
        live.batch()
        expect(page.locator("#figures")).to_contain_text("1,000")
        page.get_by_label("Token").fill(SECRET)
        page.locator("input[name=instances]").fill("3")
        page.get_by_role("button", name="Scale").click()
        expect(page.locator("#said")).to_contain_text("scale: ")
        until(lambda: bool(live.query.status()["pending"]), live.query)
        live.batch()
        expect(page.locator("#switches tbody")).to_contain_text("2 to 3")
        expect(page.locator("#buckets-picture")).to_contain_text("2")
        page.get_by_label("policy").fill("threshold?maximum=4")
        page.get_by_role("button", name="Set policy").click()
        expect(page.locator("#said")).to_have_text("policy: taken, from the next batch on")
        shed = page.locator("#shed-now")
        expect(shed).to_have_text("nothing is shed, as the backlog says, at most 90 percent")
        page.get_by_label("percent").fill("80")
        page.get_by_role("button", name="Shed", exact=True).click()
        expect(page.locator("#said")).to_contain_text("shed: taken")
        live.batch()
        expect(shed).to_have_text("80 percent is shed, as a user says, at most 90 percent")
        live.batch()  # of these tuples, whose event times are after those that were read
        expect(page.locator("#answers")).to_contain_text("of the rows were shed")
        with page.expect_response("**/api/control"):
            page.get_by_role("button", name="Leave it to the backlog").click()
        live.batch()
        expect(shed).to_contain_text("as the backlog says")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#state")).to_have_text("paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#state")).to_have_text("running")
        assert barriers(page) == []
    assert live.query.status()["policy"]["name"] == "threshold"
    [epoch] = [e for e in live.query.status()["epochs"] if "by" in e]
    assert (epoch["by"], epoch["instances"]) == ("page", 3)


def test_without_the_token_nothing_changes(browser: Browser, live: LiveQuery) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(str(live.query.dashboard))
    page.wait_for_selector("body[data-drawn]")
    newest(page)
    page.get_by_label("Token").fill("another")
    page.get_by_role("button", name="Scale").click()
    expect(page.locator("#said")).to_contain_text("changes need the token")
    context.close()
    assert not live.query.status()["pending"]


KILLED_RUN = """
import os, signal
from tidegate.cli.main import main
from tidegate.driver.journal.files import JournalFiles

def put_and_die(files, status, put=JournalFiles.put_status):
    put(files, status)
    os.kill(os.getpid(), signal.SIGKILL)

JournalFiles.put_status = put_and_die
main("run q.sql --master none --follow --checkpoint c --out o".split())
"""


def test_a_killed_run_is_shown_as_one(browser: Browser, tmp_path: Path) -> None:
    """By `tidegate dashboard`, from what its checkpoint has."""
    (tmp_path / "q.sql").write_text(
        "CREATE STREAM rides FROM 'generator:taxi?pace=2000' TIME dropoff_time;"
        "SELECT route, COUNT(*) AS n FROM rides [RANGE 1 SECONDS] GROUP BY route"
    )
    killed = subprocess.run([sys.executable, "-c", KILLED_RUN], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    shown = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "dashboard", "c"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert shown.stderr is not None
    url = shown.stderr.readline().partition("dashboard is at ")[2].partition(";")[0]
    try:
        with opened(browser, url) as page:
            expect(page.locator("#state")).to_have_text("ended without a word")
            expect(page.locator("#control")).to_contain_text("nothing to control")
            expect(page.get_by_role("group", name="The run")).to_have_count(1)
            expect(page.get_by_role("group", name="Shedding")).to_have_count(0)  # it never does
    finally:
        shown.send_signal(signal.SIGTERM)
        shown.communicate()
    assert shown.returncode == 0
