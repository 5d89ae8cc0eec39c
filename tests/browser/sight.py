"""Opens pages in Debian's Chromium, as a person with a certain screen sees them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page

TOOL = Path(__file__).parents[2] / "tools" / "browser.sh"
SERIOUS = ("serious", "critical", "moderate")


@cache
def tools() -> tuple[str, str]:
    """Where the browser and axe-core are."""
    found = subprocess.run([TOOL], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    browser, axe = found.stdout.splitlines()
    return browser, axe


@contextmanager
def opened(
    browser: Browser,
    url: str,
    width: int = 1280,
    scheme: Literal["dark", "light"] = "light",
) -> Iterator[Page]:
    """A page that has been drawn; what it says to the console as a mistake fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    try:
        page.goto(url)
        page.wait_for_selector("body[data-drawn]")
        yield page
    finally:
        context.close()
    assert not wrong, wrong


def barriers(page: Page) -> list[Any]:
    """What keeps some people from using a page, as axe-core sees it."""
    page.evaluate(Path(tools()[1]).read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 20, "axe-core must have looked"
    return [
        (one["id"], [node["target"] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]


def colours(page: Page, selector: str) -> int:
    """How many colours a canvas has: one that is blank has one or two."""
    return int(
        page.locator(selector).first.evaluate(
            """canvas => {
                const { width, height } = canvas;
                const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
                return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
    )
