"""Mistakes in lineage events and with keys in URIs."""

from __future__ import annotations

from mutants.mutant import Mutant

_EVENTS = "tests/lineage/test_events.py"
_DELIVERY = "tests/lineage/test_delivery.py"
_KEYS = "tests/remote/test_keys.py tests/secrets"

MUTANTS = (
    Mutant(
        "a run that was stopped is told as complete",
        "driver/lineage/observer.py",
        "COMPLETE if done else ABORT",
        "COMPLETE",
        _EVENTS,
    ),
    Mutant(
        "late and rejected rows count as written",
        "driver/lineage/event.py",
        "            if rows <= 0:\n                break\n",
        "",
        "tests/lineage/test_written.py",
    ),
    Mutant(
        "a restart does not name the run before it",
        "session/launch.py",
        "lineage.run_before(store)",
        "None",
        _EVENTS,
    ),
    Mutant(
        "an abort is told as a failure",
        "driver/loop.py",
        "None if self._aborted else failure",
        "failure",
        _EVENTS,
    ),
    Mutant(
        "a redirect gets the key of the lineage server",
        "driver/lineage/delivery.py",
        "urllib.request.build_opener(_NoRedirect)",
        "urllib.request.build_opener()",
        _DELIVERY,
    ),
    Mutant(
        "an event that may help when tried again is tried once",
        "driver/lineage/delivery.py",
        "pauses_s = () if self._down else self._pauses_s",
        "pauses_s = ()",
        _DELIVERY,
    ),
    Mutant(
        "a password in a parameter of a URI is shown and kept",
        "remote/scheme.py",
        "    return _PARAMETER.sub(_without_value, told)",
        "    return told",
        _KEYS,
    ),
    Mutant(
        "a checkpoint takes a URI with keys",
        "state/handle.py",
        '    refuse_keys(uri, f"checkpoint {shown(uri)}", OptionError)\n',
        "",
        _KEYS,
    ),
)
