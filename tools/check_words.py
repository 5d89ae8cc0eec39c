"""Finds words in the pages for users that are not in tools/words.txt.

    python tools/check_words.py            # exit code 1 where a word is new, and where it stands
    python tools/check_words.py --write    # write the list anew: read its diff

codespell knows common misspellings only. A list of the words that there are knows all others: a
slip of the hand is a new word, and whoever reads the diff of the list sees it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "words.txt"
NOT_PROSE = re.compile(
    r"^( *)```.*?^\1```"  # blocks
    r"|<!--.*?-->"
    r"|``.+?``|`[^`]*`"
    r"|\]\([^)]*\)|\bhttps?://\S+"  # where a link leads
    r"|&\w+;|<[^>\n]*>",
    re.MULTILINE | re.DOTALL,
)
WORD = re.compile(r"(?<![\w./*@-])[a-z]{3,}(?:['’][a-z]+)?(?![\w/@]|\.\w)")
"""In lower case: names and abbreviations are spelled as somebody else says."""


def pages(root: Path) -> list[Path]:
    return sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])


def words(text: str) -> Iterator[tuple[int, str]]:
    """The words of a page's prose, with the lines they stand in."""
    prose = NOT_PROSE.sub(lambda of: "\n" * of[0].count("\n") + " ", text)
    for number, line in enumerate(prose.splitlines(), 1):
        for found in WORD.finditer(line):
            yield number, found[0].replace("’", "'")


def unknown(root: Path, known: set[str]) -> Iterator[str]:
    """Where a word stands for the first time that is not in the list."""
    told = set(known)
    for path in pages(root):
        for number, word in words(path.read_text(encoding="utf-8")):
            if word not in told:
                told.add(word)
                yield f"{path.relative_to(root)}:{number}: {word}"


def main() -> int:
    if "--write" in sys.argv[1:]:
        found = {w for path in pages(ROOT) for _, w in words(path.read_text(encoding="utf-8"))}
        LIST.write_text("".join(f"{word}\n" for word in sorted(found)), encoding="utf-8")
        return 0
    new = [*unknown(ROOT, set(LIST.read_text(encoding="utf-8").split()))]
    print("\n".join(new), end="\n" if new else "")
    if new:
        print("spelling: words that no page had. Are they right? Then `make words` lists them.")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
