"""What `soak.py` watches: memory, descriptors and threads of processes, the disk of the checkpoint.

A figure is flat if its median over the last quarter of the samples is at most SHARE above that
over the second quarter, or at most as much above it as ALLOWED has for its unit. The first quarter
is for caches and heaps to fill. Only the samples after the driver was killed and started again are
judged: they are those of one process. The checkpoint's journal is noted, and is not judged: it
grows up to the 20,000 newest batches, and is then cut.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chart import Chart, Line
from resident_memory import anonymous_mib

SHARE = 0.10
ALLOWED = {"mib": 16.0, "descriptors": 6.0, "threads": 4.0, "processes": 0.0, "files": 24.0}
EXECUTOR = b"CoarseGrainedExecutorBackend"
JOURNAL = "journal"
GROUPS = ("driver", "jvm", "executors", "workers")

Sample = dict[str, float]


def processes() -> dict[int, int]:
    """The parent of each process of this machine."""
    found: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended meanwhile
            continue
    return found


def below(process: int, parents: Mapping[int, int]) -> list[int]:
    """All processes that a process has started, and those that they have."""
    found = [child for child, parent in parents.items() if parent == process]
    return [*found, *(one for child in found for one in below(child, parents))]


def groups(driver: int, hosts: Sequence[int]) -> dict[str, list[int]]:
    """The driver, its JVM, the executors below the workers of the cluster, and their Python."""
    parents = processes()
    started = [(p, _command(p)) for host in hosts for p in below(host, parents)]
    executors = [p for p, command in started if EXECUTOR in command]
    return {
        "driver": [driver],
        "jvm": [p for p in below(driver, parents) if b"java" in _command(p).split(b"\0")[0]],
        "executors": executors,
        "workers": [p for one in executors for p in below(one, parents)],
    }


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def sample(at_s: float, driver: int, hosts: Sequence[int], checkpoint: Path) -> Sample:
    """What all of them hold now; a process that ends meanwhile counts for nothing."""
    found: Sample = {"at_s": round(at_s, 1)}
    for name, members in groups(driver, hosts).items():
        held = [one for one in map(_held, members) if one is not None]
        found[f"{name} processes"] = len(held)
        for place, unit in enumerate(("mib", "descriptors", "threads")):
            found[f"{name} {unit}"] = round(sum(one[place] for one in held), 2)
    journal, whole = disk(checkpoint / JOURNAL), disk(checkpoint)
    for name, size, files in (
        (JOURNAL, *journal),
        ("checkpoint", whole[0] - journal[0], whole[1] - journal[1]),
    ):
        found[f"{name} mib"], found[f"{name} files"] = round(size / 2**20, 3), files
    return found


def _held(process: int) -> tuple[float, int, int] | None:
    folder = Path(f"/proc/{process}")
    try:
        return (
            anonymous_mib(process),
            len(os.listdir(folder / "fd")),
            len(os.listdir(folder / "task")),
        )
    except (OSError, ValueError):  # it has ended meanwhile
        return None


def disk(folder: Path) -> tuple[int, int]:
    """The bytes and the number of the files below a folder."""
    size = files = 0
    for at, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.stat(os.path.join(at, name)).st_size
            except FileNotFoundError:  # removed meanwhile
                continue
            files += 1
    return size, files


def judged(samples: Sequence[Sample], since_s: float) -> dict[str, dict[str, Any]]:
    """Of each figure both medians, and whether it is flat."""
    late = [one for one in samples if one["at_s"] >= since_s]
    if len(late) < 8:
        raise SystemExit(f"8 samples after the restart are needed; got {len(late)}.")
    names = [name for name in late[0] if name != "at_s" and not name.startswith(JOURNAL)]
    return {name: flat([one[name] for one in late], name.split()[-1]) for name in names}


def flat(values: Sequence[float], unit: str) -> dict[str, Any]:
    """The rule of this module, for one figure."""
    quarter = len(values) // 4
    second = statistics.median(values[quarter : 2 * quarter])
    last = statistics.median(values[-quarter:])
    most = second + max(SHARE * second, ALLOWED[unit])
    return {"second_quarter": second, "last_quarter": last, "flat": last <= most}


def table(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """In Markdown."""
    yield "| figure | second quarter | last quarter | flat |"
    yield "|---|---|---|---|"
    for name, one in figures.items():
        ends = f"{one['second_quarter']:,.1f} | {one['last_quarter']:,.1f}"
        yield f"| {name} | {ends} | {'yes' if one['flat'] else 'NO'} |"


def draw(samples: Sequence[Sample], marks: Sequence[tuple[float, str]], target: Path) -> None:
    """Memory over time, with a word where the driver was killed and where instances changed."""
    at = [one["at_s"] / 60 for one in samples]
    lines = [Line(name, [one[f"{name} mib"] for one in samples], at) for name in GROUPS]
    lines.append(Line("checkpoint", [one["checkpoint mib"] for one in samples], at))
    said = [(moment / 60, word) for moment, word in marks]
    Chart("memory and disk of the soak", "MiB", lines, marks=said, time="minutes").write(target)
