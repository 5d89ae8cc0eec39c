"""Completion in a shell: by the lines of docs/cli.md, in bash itself where there is no other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LINES = dict(
    re.findall(
        r"^\| (bash|zsh|fish) \| `[^`]+` \| `(.+)` \|$",
        (Path(__file__).parents[2] / "docs/cli.md").read_text(),
        re.MULTILINE,
    )
)
"""What the page says to write, by shell."""

FOUND = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def bash(script: str, **variables: str) -> str:
    done = subprocess.run(
        ["bash", "-c", script],
        env={**FOUND, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_bash_completes_after_the_line_of_the_page() -> None:
    asked = [("tidegate", "ex"), ("tidegate", "state", "c", "--v")]
    calls = [
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
        "_tidegate_completion tidegate; echo ${COMPREPLY[*]}"
        for words in asked
    ]
    printed = bash("\n".join([LINES["bash"], "complete -p tidegate", *calls])).splitlines()
    assert printed[0].endswith("-F _tidegate_completion tidegate")
    assert printed[1:] == ["explain", "--verify"]


@pytest.mark.parametrize(
    ("shell", "registers", "word", "answer"),
    [
        ("zsh", "compdef _tidegate_completion tidegate", "1", "plain\nexplain\n"),
        ("fish", "complete --no-files --command tidegate", "ex", "plain,explain\t"),
    ],
)
def test_the_other_shells_get_their_script_and_their_answers(
    shell: str, registers: str, word: str, answer: str
) -> None:
    """The script registers a function that asks the command again; its answer has their form."""
    assert f"_TIDEGATE_COMPLETE={shell}_source tidegate" in LINES[shell]
    if shell == "zsh":  # the script calls compdef, which zsh has after compinit
        assert LINES[shell].startswith("autoload -Uz compinit && compinit;")
    assert registers in bash(f"_TIDEGATE_COMPLETE={shell}_source tidegate")
    variables = {"COMP_WORDS": "tidegate ex", "COMP_CWORD": word}
    assert bash("tidegate", _TIDEGATE_COMPLETE=f"{shell}_complete", **variables).startswith(answer)


def test_names_of_commands_need_no_engine() -> None:
    """And what stands for a path is completed as one."""
    asked = {"_TIDEGATE_COMPLETE": "bash_complete", "COMP_CWORD": "1", "COMP_WORDS": "tidegate s"}
    loaded = "import sys; from tidegate.cli.main import main\ntry: main()\nfinally: print("
    loaded += "sorted({'tidegate.driver.loop', 'tidegate.cli.run'} & set(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", loaded],
        env={**FOUND, **asked},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.splitlines() == ["plain,sql", "plain,simulate", "plain,state", "[]"]
    words = {"COMP_CWORD": "2", "COMP_WORDS": "tidegate state c"}
    assert bash("tidegate", _TIDEGATE_COMPLETE="bash_complete", **words) == "file,c\n"
