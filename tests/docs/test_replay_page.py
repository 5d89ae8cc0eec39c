"""The pages on replay and proof: their Python needs what there is."""

from __future__ import annotations

import inspect

import tidegate as tg
from tests.docs.block import ROOT


def test_the_options_that_the_page_names_are_there() -> None:
    page = (ROOT / "docs/replay.md").read_text(encoding="utf-8")
    assert 'session.replay("ckpt", ' in page
    assert {"outputs", "batch", "out"} <= set(inspect.signature(tg.Session.replay).parameters)
    page = (ROOT / "docs/proof.md").read_text(encoding="utf-8")
    assert 'session.verify("ckpt", stream)' in page
    assert {"from_", "to", "retained"} <= set(inspect.signature(tg.Session.verify).parameters)
