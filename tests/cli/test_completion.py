"""Completion in a shell: by the lines that are installed, in bash itself where it can be tried."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.cli import completion
from tidegate.cli.main import invoke

LINES = {shell: line for shell, (_, line) in completion.LINES.items()}
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


def test_bash_completes_after_its_line() -> None:
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
    loaded += "sorted({'tidegate.driver.loop', 'tidegate.cli.command.run'} & set(sys.modules)))"
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


@pytest.mark.parametrize("shell", completion.LINES)
@pytest.mark.parametrize("before", [None, "alias l=ls\n", "no end of line"])
def test_a_line_is_installed_once(
    shell: str, before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / completion.LINES[shell][0].removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    if before is not None:
        path.write_text(before)
    for _ in range(2):
        assert invoke(["--install-completion", shell]) == 0
    kept = [] if before is None else before.splitlines()
    assert path.read_text().splitlines() == [*kept, LINES[shell]]


def test_a_file_that_cannot_be_written_is_a_mistake_with_the_line_to_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").mkdir()
    assert invoke(["--install-completion", "bash"]) == 2
    assert LINES["bash"] in capsys.readouterr().err
