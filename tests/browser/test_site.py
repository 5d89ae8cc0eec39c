"""The documentation as a site: no network, search that finds, and nothing that keeps people out."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.sight import tools
from tests.docs.block import ROOT

LOOKED_AT = (
    "index.html",
    "tutorial.html",
    "gallery.html",
    "tasks.html",
    "sql/windows.html",
    "ideas/watermark.html",
    "reference/commands.html",
    "reference/aggregates.html",
    "shedding.html",
    "operations.html",
    "404.html",
)


class Quiet(SimpleHTTPRequestHandler):
    """A server that writes no log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(params=[("light", 1280), ("dark", 390)], ids=["light", "dark on a phone"])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    scheme, width = request.param
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    yield context.new_page()
    context.close()


def test_no_page_asks_for_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 80
    asks = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?https?:")
    assert [p.name for p in pages if asks.search(p.read_text(encoding="utf-8"))] == []
    styles = "".join(p.read_text(encoding="utf-8") for p in site.rglob("*.css"))
    assert styles
    assert "http" not in styles.replace("http-equiv", "")


def test_nothing_keeps_people_from_reading(address: str, page: Page) -> None:
    axe = Path(tools()[1]).read_text(encoding="utf-8")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in LOOKED_AT:
        page.goto(f"{address}/{name}")
        page.evaluate(axe)
        found = page.evaluate("axe.run()")
        assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == [], name
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
    assert len(asked) >= len(LOOKED_AT)
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


def test_search_leads_to_a_page(address: str, page: Page) -> None:
    page.goto(f"{address}/index.html")
    page.get_by_label("Search").fill("session gap")
    page.get_by_label("Search").press("End")
    first = page.locator("#mkdocs-search-results a").first
    first.wait_for()
    shown = page.locator("#mkdocs-search-results").inner_text()
    assert "Sessions" in shown
    first.click()
    page.wait_for_url("**/*.html*")
    assert "GAP" in page.locator("main").inner_text()
