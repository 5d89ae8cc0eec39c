"""What the page on the gate object shows runs as it stands, and prints what it says."""

from __future__ import annotations

import inspect
import re

from tests.docs.block import ROOT, blocks
from tidegate.gate.gate import Gate


def test_the_example_prints_what_its_comments_say(capsys):
    (program,) = blocks("docs/gate.md", "python")
    exec(compile(program, "docs/gate.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "0",
        "['open', 'tilted']",
        "['tilted', 'shut']",
        "['shut']",
        "['shut']",
        "True",
    ]
    said = re.findall(r"print\(.*\)  # (\S.*)", program)
    assert said == [
        "0: the window has sent nothing yet",
        *printed[1:3],
        "['shut'], ['shut']",
        "True",
    ]


def test_the_page_lists_every_method():
    page = (ROOT / "docs/gate.md").read_text(encoding="utf-8")
    methods = [n for n, _ in inspect.getmembers(Gate, inspect.isfunction) if not n.startswith("_")]
    assert [n for n in methods if f"| `{n}(" not in page] == []
