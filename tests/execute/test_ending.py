"""The end of a program: in which order things are stopped and taken down."""

from __future__ import annotations

import subprocess
import sys

from tests.crash.process import ENVIRONMENT

ORDER = """
import threading
from tidegate import schedule
from tidegate.execute.shutdown import clean_at_end, stop_at_end

stopped = threading.Event()

def work():
    stopped.wait()
    print("the work is finished")
    clean_at_end(print, "what was made last is taken down")

clean_at_end(print, "what was made first is taken down")
running = schedule.current().start("work", work, daemon=True)
stop_at_end(running, stopped.set)
print("the program ends")
"""

FORK = """
import os, sys
from tidegate.execute.shutdown import clean_at_end

clean_at_end(print, "taken down", flush=True)
if os.fork() == 0:
    clean_at_end(print, "what the child made is taken down", flush=True)
    sys.exit()
os.wait()
"""


def lines(program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


def test_what_works_is_waited_for_and_then_the_newest_is_taken_down_first() -> None:
    assert lines(ORDER) == [
        "the program ends",
        "the work is finished",
        "what was made last is taken down",
        "what was made first is taken down",
    ]


def test_a_forked_process_takes_down_what_it_has_made_itself() -> None:
    assert lines(FORK) == ["what the child made is taken down", "taken down"]
