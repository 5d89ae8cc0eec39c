"""Links of README, CHANGELOG and CONTRIBUTING lead somewhere; mkdocs checks those of the site."""

from __future__ import annotations

import re
from os.path import normpath
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify, unique

from tests.docs.block import ROOT

PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def prose(text: str) -> str:
    """A page without its blocks of code and without code in lines."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "``", text)


def links(text: str) -> list[str]:
    """The targets of links and pictures that lead to a file or a section of this repository."""
    targets: list[str] = re.findall(r"\]\(\s*<?([^)\s>]+)", prose(text))
    targets += re.findall(r"^ *\[[^\]]+\]:\s*(\S+)", prose(text), re.MULTILINE)
    return [target for target in targets if not ELSEWHERE.match(target)]


def anchors(text: str) -> set[str]:
    """The names that the site and GitHub give to the headings of a page."""
    found: set[str] = set()
    blockless = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ +(.*?) *#*$", blockless, re.MULTILINE):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        unique(slugify(re.sub(r"[`*]", "", shown), "-"), found)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def dead(page: str, text: str, root: Path = ROOT) -> list[str]:
    """The links of a page to a file that is not there, or to a section that its file lacks."""
    found = []
    for target in links(text):
        path, _, anchor = target.partition("#")
        file = root / normpath(Path(page).parent / path) if path else root / page
        if path and not file.exists():
            found.append(target)
        elif anchor and file.suffix == ".md":
            there = text if not path else file.read_text(encoding="utf-8")
            if anchor not in anchors(there):
                found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(links(text)) >= 5
    assert dead(page, text) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    there = "# A page\n\n## `Some` words, and more\n\n## Twice\n\n## Twice\n"
    (tmp_path / "there.md").write_text(there)
    text = """[here](#one-heading) [file](there.md) [section](there.md#some-words-and-more)
[second](there.md#twice_1) [site](https://example.org/#x) `[code](nowhere.md)`

# One heading

```
[block](nowhere.md)
```
![gone](gone.png) [gone](nowhere.md#x) [no section](there.md#words) [nor here](#two)
"""
    gone = ["gone.png", "nowhere.md#x", "there.md#words", "#two"]
    assert dead("page.md", text, tmp_path) == gone
