"""Mistakes in what /metrics has, and in the log as JSON."""

from __future__ import annotations

from mutants.mutant import Mutant

_EXPOSITION = "tests/driver/test_exposition.py"

MUTANTS = (
    Mutant(
        "a local watermark is that of the query",
        "driver/metric/progress.py",
        "            if alone:  #",
        "            if False:  #",
        _EXPOSITION,
    ),
    Mutant(
        "a source that has ended lags",
        "driver/metric/progress.py",
        "one.newest_us > MIN_US and one.reach_us < MAX_US",
        "one.newest_us > MIN_US",
        _EXPOSITION,
    ),
    Mutant(
        "a time that is a bound counts above it",
        "driver/metric/family.py",
        "bisect_left(BOUNDS_S, seconds)",
        "bisect_left(BOUNDS_S, seconds + 1e-9)",
        _EXPOSITION,
    ),
    Mutant(
        "names with quotes break the text",
        "driver/exposition/text.py",
        """.replace('"', '\\\\"')""",
        "",
        _EXPOSITION,
    ),
    Mutant(
        "what a client does not want is sent",
        "driver/exposition/text.py",
        "max(plain, 1e-3)",
        "plain",
        _EXPOSITION,
    ),
    Mutant(
        "metrics of queries that have ended stay",
        "dashboard/loop_query.py",
        '        if not is_running({"state": self._loop.state}):\n            return None\n',
        "",
        "tests/dashboard/test_server.py",
    ),
    Mutant(
        "a page takes all the time there is for its pictures",
        "dashboard/server.py",
        "max(PICTURE_S, took_s / PICTURE_SHARE)",
        "PICTURE_S",
        "tests/dashboard/test_server.py",
    ),
    Mutant(
        "a batch between the first look and the first batch observed is counted twice",
        "driver/exposition/observer.py",
        "        if report.batch > self._folded:\n",
        "        if True:\n",
        "tests/driver/test_exposition.py",
    ),
    Mutant(
        "a start that fails keeps the port",
        "session/dashboard.py",
        "                server.close()\n",
        "",
        "tests/dashboard/test_server.py",
    ),
    Mutant(
        "lines of others stay text",
        "cli/line.py",
        "if not line.startswith(_BEGINNING):",
        "if False:",
        "tests/cli/test_line.py",
    ),
    Mutant(
        "the bytes of spills are not counted",
        "operate/spill.py",
        "_TALLY.sizes.append(self._spilled_bytes)",
        "_TALLY.sizes.append(0)",
        "tests/operate/test_spill.py",
    ),
)
