"""Mistakes in processes and the workers that run them."""

from __future__ import annotations

from mutants.mutant import CREW, Mutant

MUTANTS = (
    # Processes.
    Mutant(
        "the oldest row of an entry counts",
        "operate/process/entry.py",
        "kept = order[np.append(last, True)[: len(order)]]",
        "kept = order[np.append(True, last)[: len(order)]]",
        "tests/operate/process/test_entry.py tests/operate/process/test_state.py",
    ),
    Mutant(
        "a key that comes twice in a list is seen twice",
        "operate/process/advance.py",
        "_, first = np.unique(parents * ranks.size + ranks.codes, return_index=True)",
        "first = np.arange(len(parents))",
        "tests/operate/process/test_advance.py tests/operate/process/test_operator.py",
    ),
    Mutant(
        "an entry that is not in memory counts as absent",
        "operate/process/hot.py",
        "hot.behind = None if hot.whole else cache(partial(self._stored, bucket))",
        "hot.behind = None",
        "tests/operate/process/test_hot.py",
    ),
    Mutant(
        "an entry that was removed stays in memory",
        "operate/process/hot.py",
        "        if row.entry < HIDES:\n",
        "        if True:\n",
        "tests/operate/process/test_hot.py",
    ),
    Mutant(
        "entries are let go before they have expired",
        "operate/process/hot.py",
        "if until_us <= since_us]",
        "if until_us <= since_us + 9]",
        "tests/operate/process/test_hot.py",
    ),
    Mutant(
        "a bucket that lost entries is taken to be whole",
        "operate/process/hot.py",
        "            self.whole = False\n",
        "            self.whole = self.whole\n",
        "tests/operate/process/test_hot.py",
    ),
    Mutant(
        "an entry lives on at the instant at which it expires",
        "operate/process/state.py",
        "if self._now_us() >= cell.until_us:",
        "if self._now_us() > cell.until_us:",
        "tests/operate/process/test_state.py",
    ),
    Mutant(
        "a row of columns lives on at the instant at which it expires",
        "operate/process/columns.py",
        'np.searchsorted(self.column(TS), upto, "right")',
        'np.searchsorted(self.column(TS), upto, "left")',
        "tests/operate/process/test_columns.py",
    ),
    Mutant(
        "chunks of columns that were written together are stored twice",
        "operate/process/columns.py",
        '                changes.append(first.written(prefix, b""))\n',
        "                pass\n",
        "tests/operate/process/test_columns.py",
    ),
    Mutant(
        "an entry that has expired keeps its place in the order",
        "operate/process/state.py",
        "            cell.key, cell.number = key, self._number()\n",
        "            cell.key, cell.number = key, cell.number or self._number()\n",
        "tests/operate/process/test_state.py",
    ),
    Mutant(
        "a merge drops entries before they have expired",
        "operate/process/entry.py",
        '(ints(rows, "pending_us") > self.frontier_us)',
        '(ints(rows, "pending_us") > self.frontier_us + 1)',
        "tests/operate/process/test_state.py tests/operate/test_layered_state.py",
    ),
    Mutant(
        "a row that hides an entry does not",
        "operate/process/segment_rows.py",
        "found[name] = None if hides else StoredEntry(*row)",
        "found[name] = StoredEntry(*row)",
        "tests/operate/process/test_state.py",
    ),
    # Processes over windows.
    Mutant(
        "of the objects of a key and window one counts",
        "operate/aggregate/process.py",
        "parts[0] if count == 1 else self._merged(parts)",
        "parts[0]",
        "tests/operate/aggregate/test_process.py",
    ),
    Mutant(
        "an object sees tuples in the order in which they arrived",
        "operate/aggregate/process.py",
        "order = np.lexsort([*(integers(place) for place in (seq, src, ts)), groups.codes])",
        "order = np.argsort(groups.codes, kind='stable').astype(np.int64)",
        "tests/operate/aggregate/test_process.py",
    ),
    # Workers that stay.
    Mutant(
        "a worker goes on inside a task when the driver is gone",
        "execute/resident/worker.py",
        "if not poll.poll(GRACE_S * 1000):",
        "if False:",
        CREW,
    ),
    Mutant(
        "work that has lost its worker is not done again",
        "execute/resident/crew.py",
        "if unit.lost < TRIES:",
        "if unit.lost < 0:",
        CREW,
    ),
    Mutant(
        "work is done again for ever",
        "execute/resident/crew.py",
        "        unit.lost += 1\n",
        "        unit.lost += 0\n",
        CREW,
    ),
    Mutant(
        "a worker that hangs is not replaced",
        "execute/resident/crew.py",
        "if worker.silent_s > self._hung_s:",
        "if False:",
        CREW,
    ),
    Mutant(
        "a worker is taken to have what another was sent",
        "execute/resident/unit.py",
        "    has: dict[str, None] = field(default_factory=dict)\n",
        "    has: dict[str, None] = field(default_factory=lambda held=dict(): held)\n",
        CREW,
    ),
    # On a cluster.
    Mutant(
        "parcels that died with their worker end the run",
        "execute/spark/retry.py",
        "            if said is None or not left:\n",
        "            if True:\n",
        "tests/crash/test_workers_killed.py",
    ),
    Mutant(
        "parcels of batches that are done stay",
        "execute/resident/depot.py",
        "                disk.remove_tree(folder)\n",
        "                pass\n",
        CREW,
    ),
    Mutant(
        "a door gives files that were not shipped",
        "execute/resident/depot.py",
        "ParcelDoor(opened, secret, self._shipped.get)",
        "ParcelDoor(opened, secret, lambda name: self._shipped.get(name, name))",
        CREW,
    ),
    Mutant(
        "workers elsewhere are to find a folder of the driver",
        "execute/spark/session/setting.py",
        "if one_host and len(folder)",
        "if len(folder)",
        "tests/spark/test_setting.py",
    ),
    Mutant(
        "an executor may write another folder of the same name",
        "execute/spark/probe.py",
        "if there.read() != data:",
        "if False:",
        "tests/spark/test_preflight.py",
    ),
    Mutant(
        "a job whose rows were lost is not run again",
        "execute/spark/failure.py",
        'return "with indeterminate output was failed and retried" in str(error)',
        "return False",
        "tests/spark/test_runner.py",
    ),
)
