"""Takes the picture of a report that a page of the documentation shows.

    python tools/screenshot.py REPORT.html PICTURE.png [SELECTOR...] [--dark] [--width PIXELS]

The picture has the page down to the last of the selectors, or all of it, in 128 colours.
"""

from __future__ import annotations

import argparse
import io
import subprocess
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

TOOL = Path(__file__).with_name("browser.sh")
MOST_BYTES = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("selectors", nargs="*", default=["main"])
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    given = parser.parse_args()
    browser = subprocess.run([TOOL], capture_output=True, text=True, check=True).stdout.split()[0]
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport={"width": given.width, "height": 900},
            color_scheme="dark" if given.dark else "light",
        )
        page.goto(given.report.resolve().as_uri())
        page.wait_for_selector("body[data-drawn]")
        boxes = [page.locator(selector).first.bounding_box() for selector in given.selectors]
        bottom = max(box["y"] + box["height"] for box in boxes if box) + 8
        shot = page.screenshot(
            full_page=True, clip={"x": 0, "y": 0, "width": given.width, "height": bottom}
        )
    image = Image.open(io.BytesIO(shot)).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(given.picture, optimize=True)
    size = given.picture.stat().st_size
    print(f"{given.picture}: {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"a picture has at most {MOST_BYTES:,} bytes; show less of the page")


if __name__ == "__main__":
    main()
