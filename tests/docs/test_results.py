"""What the pages say was measured is there: no table waits for a result."""

from __future__ import annotations

from tests.docs.block import ROOT

WAITS = "There is no result yet."


def test_no_page_waits_for_a_result() -> None:
    """Those beside the papers say what they lack in words of their own (tests/test_papers.py)."""
    docs = ROOT / "docs"
    pages = [p for p in docs.rglob("*.md") if not p.is_relative_to(docs / "papers")]
    assert len(pages) > 80
    waiting = [p.name for p in pages if WAITS in " ".join(p.read_text(encoding="utf-8").split())]
    assert waiting == []
