"""The documentation as a site: no network, search that finds, and nothing that keeps people out."""

from __future__ import annotations

import hashlib
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

ONE_OF_EACH_KIND = (
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


PARTS = 6
"""All pages take minutes: each of the two screens looks at another part of them."""


def looked_at(site: Path, part: int) -> list[str]:
    """One page of each kind, and a part of all, chosen by their names."""
    names = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    drawn = {n: int(hashlib.sha256(n.encode()).hexdigest(), 16) % PARTS for n in names}
    chosen = {*ONE_OF_EACH_KIND, *(n for n in names if drawn[n] == part)}
    assert len(names) / PARTS / 2 < len(chosen) - len(ONE_OF_EACH_KIND)
    return sorted(chosen)


SCREENS = [("light", 1280), ("dark", 390)]


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


@pytest.fixture(params=SCREENS, ids=["light", "dark on a phone"])
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


def test_nothing_keeps_people_from_reading(
    site: Path, address: str, page: Page, request: pytest.FixtureRequest
) -> None:
    axe = Path(tools()[1]).read_text(encoding="utf-8")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    names = looked_at(site, part=SCREENS.index(request.node.callspec.params["page"]))
    for name in names:
        page.goto(f"{address}/{name}")
        page.evaluate(axe)
        found = page.evaluate("axe.run()")
        assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == [], name
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
    assert len(asked) >= len(names)
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


def test_no_table_has_a_header_without_a_text(site: Path) -> None:
    """Quick, and so for all pages: a reader of the screen says "blank" at each of its cells."""
    pages = [p.read_text(encoding="utf-8") for p in sorted(site.rglob("*.html"))]
    assert sum("<th" in page for page in pages) > 50
    assert [page for page in pages if re.search(r"<th[^>]*>\s*</th>", page)] == []


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
