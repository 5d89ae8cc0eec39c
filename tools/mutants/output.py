"""Mistakes in what comes out of a query."""

from __future__ import annotations

from mutants.mutant import DETERMINISM, DURABLE, EVERY_STEP, Mutant

MUTANTS = (
    # Commit, recovery, output.
    Mutant(
        "a batch is shown before it is committed",
        "driver/pipeline.py",
        "        self.checkpoint.commit(prepared.manifest, prepared.due)\n",
        "        self.outlets.publish(prepared.manifest)\n"
        "        self.checkpoint.commit(prepared.manifest, prepared.due)\n",
        DURABLE,
    ),
    Mutant(
        "what is committed is not shown at the next start",
        "driver/pipeline.py",
        "lost = self.outlets.publish_again(newest)",
        "lost = {}",
        EVERY_STEP,
    ),
    Mutant(
        "output that was lost is not asked for",
        "driver/outlet.py",
        "                lost[name] = error\n",
        "                continue\n",
        "tests/driver/test_replay.py",
    ),
    Mutant(
        "a staged part of another size is published",
        "sink/receipt.py",
        "        if size != self.bytes:\n",
        "        if False:\n",
        "tests/sink/test_files.py",
    ),
    Mutant(
        "JSON takes NaN and infinities unasked",
        "sink/folder/part.py",
        "        if not part.side:\n            self.form.check(rows, self.where)\n",
        "",
        "tests/sink/test_nonfinite.py",
    ),
    Mutant(
        "Postgres gets a batch that it has",
        "sink/postgres/sink.py",
        "            if entry.batch is not None and entry.batch >= batch:\n"
        "                cursor.connection.rollback()",
        "            if False:\n                cursor.connection.rollback()",
        "tests/postgres/test_postgres_sink.py",
    ),
    Mutant(
        "a run that was taken over writes to Postgres",
        "sink/postgres/sink.py",
        "if entry.owner > self.opening.owner:",
        "if False:",
        "tests/postgres/test_postgres_sink.py",
    ),
    Mutant(
        "the number of a batch is not in the transaction of its rows",
        "sink/postgres/sink.py",
        "            self._ledger(target).write(cursor, self.opening.owner, batch, rows)\n",
        "            cursor.connection.commit()\n"
        "            self._ledger(target).write(cursor, self.opening.owner, batch, rows)\n",
        "tests/postgres/test_postgres_sink.py",
    ),
    Mutant(
        "a damaged ledger is believed",
        "sink/folder/batch_ledger.py",
        "    if stated != ",
        "    if False and stated != ",
        "tests/sink/test_batch_ledger.py",
    ),
    Mutant(
        "parts that were published long ago are not compared",
        "sink/folder/past.py",
        "part.wrong is not None and part.folder in there",
        "False",
        "tests/sink/test_batch_ledger.py",
    ),
    Mutant(
        "a committed batch that waits is swept away",
        "sink/folder/staging.py",
        " and int(batch[1]) != keep:",
        ":",
        "tests/sink/test_files.py tests/driver/test_replay.py",
    ),
    Mutant(
        "counters count the newest batch alone",
        "driver/checkpoint/commit.py",
        "counters = Counter(previous.counters)",
        "counters = Counter[str]()",
        DETERMINISM,
    ),
    Mutant(
        "the first output's rows are counted",
        "driver/metric/rows.py",
        "sum(output.count for output in work.staged.outputs)",
        "work.staged.outputs[0].count",
        DURABLE,
    ),
    Mutant(
        "late tuples are told by every subquery that reads their stream",
        "execute/splits.py",
        "            if isinstance(prefix.origin, int) and prefix.origin not in told:\n",
        "            if isinstance(prefix.origin, int):\n",
        f"tests/execute/test_splits.py tests/driver/test_graph.py {DURABLE}",
    ),
    Mutant(
        "late tuples of a split are those of its beginning",
        "execute/splits.py",
        "mask = whole.late[start - whole.start : stop - whole.start]",
        "mask = whole.late[: stop - start]",
        f"tests/execute/test_splits.py {DETERMINISM}",
    ),
    Mutant(
        "rows of one trigger in any order",
        "collect/trigger.py",
        "np.lexsort([rows.column(n).to_numpy() for n in reversed(names)])",
        "np.lexsort([rows.column(n).to_numpy() for n in reversed(names[:-1])])",
        "tests/collect/test_trigger.py",
    ),
    Mutant(
        "a limit of rows for all windows together",
        "collect/window.py",
        "place = np.arange(rows.num_rows) - np.repeat(starts, lengths)",
        "place = np.arange(rows.num_rows)",
        "tests/collect/test_window.py",
    ),
    # Results and input elsewhere.
    Mutant(
        "a batch elsewhere has its first part first",
        "sink/folder/remote.py",
        "(*sides, *reversed(rows))",
        "(*sides, *rows)",
        "tests/sink/test_remote.py",
    ),
    Mutant(
        "parts elsewhere are not compared with their receipts",
        "sink/folder/remote.py",
        "                if wrong:\n",
        "                if False:\n",
        "tests/sink/test_remote.py",
    ),
    Mutant(
        "what a later run has put aside elsewhere is deleted",
        "sink/folder/remote.py",
        "int(found[2]) <= self._owner and ",
        "",
        "tests/sink/test_remote.py",
    ),
    Mutant(
        "a listed file elsewhere may change",
        "source/remote_listing.py",
        "            if name not in waiting:\n",
        "            if False:\n",
        "tests/source/test_remote_listing.py",
    ),
    Mutant(
        "a scheme that is not known is a folder",
        "state/store.py",
        "        if scheme_of(location) is None:\n",
        "        if not is_remote_uri(location):\n",
        "tests/state/test_store.py",
    ),
    # What is said of a run.
    Mutant(
        "the disorder that is named is not enough for all late tuples",
        "gate/lateness.py",
        "return int(behind.max())",
        "return int(behind.min())",
        "tests/gate/test_lateness.py",
    ),
    Mutant(
        "late tuples of earlier batches are forgotten",
        "driver/report/side.py",
        'known["rows"] += part.slice.late_rows',
        'known["rows"] = part.slice.late_rows',
        "tests/cli/test_late.py",
    ),
    Mutant(
        "a checkpoint knows subqueries by the names in the script",
        "driver/checkpoint/commit.py",
        "job.subquery.key: recorded",
        "job.subquery.name: recorded",
        "tests/cli/test_names.py",
    ),
)
