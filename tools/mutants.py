"""Mistakes that tests must find, between the code as it is and `tools/mutate.py`, which makes them.

Each is a piece of source that occurs exactly once in its file, what takes its place, and the tests
of which at least one must fail then. `tests/test_tools.py` checks that all still apply.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One mistake: `old` in `file` (below src/tidegate) becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: str


DURABLE = "tests/driver/test_durable.py"
DETERMINISM = "tests/property/test_determinism.py"
JOINS = "tests/property/test_join_determinism.py"
JOIN_STATE = "tests/driver/test_join_state.py"
CHANGE = "tests/driver/test_change.py"
GRAPHS = "tests/property/test_graphs.py"
EVERY_STEP = (
    "tests/crash/test_driver_killed.py::test_killed_at_every_step_of_batches_in_turn[aggregate-0]"
)
CUT = "tests/gate/test_lazy_cut.py tests/gate/test_intake.py"
OWNER = "tests/driver/test_fence.py tests/state/test_owner.py"
STORE = "tests/state/test_store.py tests/state/test_crash.py"

MUTANTS = (
    # Results and input elsewhere.
    Mutant(
        "a batch elsewhere has its first part first",
        "sink/remote.py",
        "(*sides, *reversed(rows))",
        "(*sides, *rows)",
        "tests/sink/test_remote.py",
    ),
    Mutant(
        "parts elsewhere are not compared with their receipts",
        "sink/remote.py",
        "                if wrong:\n",
        "                if False:\n",
        "tests/sink/test_remote.py",
    ),
    Mutant(
        "what a later run has put aside elsewhere is deleted",
        "sink/remote.py",
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
    # The first rows of a stream.
    Mutant(
        "LIMIT begins to count again with every batch",
        "operate/process/first_rows.py",
        'self.left = state["left"]',
        "pass",
        "tests/session/test_limit.py",
    ),
    Mutant(
        "a query goes on when it has all the rows of its LIMIT",
        "driver/loop.py",
        'return self._manifest.counters.get("rows_out", 0) >= wanted',
        "return False",
        "tests/session/test_limit.py",
    ),
    Mutant(
        "a condition of HAVING that is not of keys is asked of the tuples",
        "query/having.py",
        "return bool(named) and named <= {name for name, _ in aggregate.keys}",
        "return True",
        "tests/session/test_elsewhere.py tests/sql",
    ),
    # What outlives a loss of power.
    Mutant(
        "files are not synced",
        "whole_file.py",
        'if sync != "nothing":',
        "if False:",
        DURABLE,
    ),
    Mutant(
        "a file takes its name before it is synced",
        "whole_file.py",
        """            if sync != "nothing":
                disk.current().sync(file)
        disk.current().replace(aside, path)
""",
        """            disk.current().replace(aside, path)
            if sync != "nothing":
                disk.current().sync(file)
""",
        DURABLE,
    ),
    Mutant(
        "names in the checkpoint are not synced",
        "whole_file.py",
        'if sync == "folder":',
        "if False:",
        DURABLE,
    ),
    Mutant(
        "parts of results are not synced",
        "whole_file.py",
        "            yield file\n            disk.current().sync(file)\n",
        "            yield file\n",
        DURABLE,
    ),
    Mutant(
        "names of parts are not synced",
        "sink/staging.py",
        "            disk.current().sync_folder(inner)\n",
        "            pass\n",
        DURABLE,
    ),
    Mutant(
        "the name of a staged batch is not synced",
        "sink/staging.py",
        "        disk.current().sync_folder(self.folder)\n",
        "",
        DURABLE,
    ),
    Mutant(
        "the name of a published batch is not synced",
        "sink/files.py",
        "                disk.current().sync_folder(self.path)\n",
        "",
        DURABLE,
    ),
    Mutant(
        "the name of a side output is not synced",
        "sink/files.py",
        "        disk.current().sync_folder(target.parent)\n",
        "",
        DURABLE,
    ),
    # The gate: cuts, lateness, the frontier.
    Mutant(
        "a place in the merge is its time alone",
        "gate/cut.py",
        "return place < self._last",
        "return place[0] < self._last[0]",
        CUT,
    ),
    Mutant(
        "the last row is taken to be in the first run",
        "gate/cut.py",
        "            last_run = run\n",
        "",
        CUT,
    ),
    Mutant(
        "equal times are taken beyond the limit",
        "gate/cut.py",
        'ties = min(int(np.searchsorted(k, last_key, "right")) - counts[run], left)',
        'ties = int(np.searchsorted(k, last_key, "right")) - counts[run]',
        CUT,
    ),
    Mutant(
        "runs are searched to a key too late",
        "gate/cut.py",
        'if sum(int(np.searchsorted(k, middle, "right")) for k in keys) >= limit_rows:',
        'if sum(int(np.searchsorted(k, middle, "right")) for k in keys) > limit_rows:',
        CUT,
    ),
    Mutant(
        "a tuple at the limit of disorder is late",
        "gate/lateness.py",
        "valid & (times_us < np.maximum(limit, consumed_us))",
        "valid & (times_us <= np.maximum(limit, consumed_us))",
        "tests/gate/test_lateness.py",
    ),
    Mutant(
        "the first tuple of a batch is never late",
        "gate/lateness.py",
        "before[0] = floor_us",
        "before[0] = MIN_US",
        CUT,
    ),
    Mutant(
        "the frontier goes back",
        "gate/frontier.py",
        "return max(previous_us, lowest)",
        "return lowest",
        "tests/gate/test_frontier.py",
    ),
    Mutant(
        "idle feeds alone let the frontier go to the end",
        "gate/frontier.py",
        "lowest = max(unfinished)",
        "lowest = MAX_US",
        "tests/gate/test_frontier.py",
    ),
    Mutant(
        "a tuple at the frontier is ready",
        "gate/merge.py",
        'frontier_us, "left")',
        'frontier_us, "right")',
        "tests/gate/test_gate.py tests/gate/test_gate_stateful.py",
    ),
    Mutant(
        "ready tuples of one time in any order",
        "gate/merge.py",
        'np.argsort(times, kind="stable")',
        "np.argsort(times)[::-1][np.argsort(-np.sort(times))]",
        "tests/gate/test_gate.py tests/gate/test_gate_stateful.py",
    ),
    Mutant(
        "waiting tuples are read again from where others were consumed",
        "gate/track.py",
        "self.source, self.waiting_from, self.position, self.waiting_floor_us",
        "self.source, self.waiting_from, self.position, self.floor_us",
        f"{CUT} {DETERMINISM}",
    ),
    Mutant(
        "the newest time of a source is forgotten at a restart",
        "gate/track.py",
        'self.floor_us = saved["floor_us"]',
        "self.floor_us = MIN_US",
        f"{CUT} {DETERMINISM}",
    ),
    Mutant(
        "the newest time before waiting tuples is that of all",
        "gate/track.py",
        "self.waiting_floor_us = int(self._held.keys[consumed - 1])",
        "self.waiting_floor_us = self.floor_us",
        f"{CUT} {DETERMINISM}",
    ),
    # Routing and switches.
    Mutant(
        "sliced decimal keys are hashed from the start of their column",
        "route/bucket.py",
        "words = words[column.offset : column.offset + len(column)]",
        "words = words[: len(column)]",
        "tests/route/test_bucket.py",
    ),
    Mutant(
        "negative zero has a bucket of its own",
        "route/bucket.py",
        "values = doubles + 0.0",
        "values = doubles.copy()",
        "tests/route/test_bucket.py",
    ),
    Mutant(
        "a switch leaves the buckets of instances that are gone",
        "route/mapping.py",
        "share[:instances] = smaller",
        "share[:] = smaller",
        "tests/route/test_mapping.py",
    ),
    Mutant(
        "a switch keeps the epoch",
        "route/mapping.py",
        "return Mapping(EpochId(current.epoch + 1), instances, tuple(owners.tolist()))",
        "return Mapping(EpochId(current.epoch), instances, tuple(owners.tolist()))",
        "tests/route/test_mapping.py",
    ),
    # Kernels: exact sums, decimals, groups.
    Mutant(
        "sliced decimals are read from the start of their column",
        "operate/kernels/decimal.py",
        "low, high = words[value.offset : value.offset + len(value)].T",
        "low, high = words[: len(value)].T",
        "tests/operate/kernels/test_decimal.py",
    ),
    Mutant(
        "sliced decimals are summed from the start of their column",
        "operate/kernels/total.py",
        "words = words.reshape(-1, 4)[column.offset : column.offset + len(column)]",
        "words = words.reshape(-1, 4)[: len(column)]",
        "tests/operate/kernels/test_total.py",
    ),
    Mutant(
        "limbs of totals are not carried",
        "operate/kernels/total.py",
        "        result[i + 1] += result[i] >> 32\n",
        "",
        "tests/operate/kernels/test_total.py",
    ),
    Mutant(
        "sums in turns take the codes of the first turn",
        "operate/kernels/exact_sum.py",
        "codes[rows] - first, *chosen",
        "codes[rows], *chosen",
        "tests/operate/kernels/test_exact_sum.py",
    ),
    Mutant(
        "kept sums of a slice are those of the column",
        "operate/kernels/exact_sum.py",
        "len(sums) + 1, 8 * sums.offset)",
        "len(sums) + 1)",
        "tests/operate/kernels/test_exact_sum.py",
    ),
    Mutant(
        "a sum has no room for its last carry",
        "operate/kernels/exact_sum.py",
        "return low, max(high - low + reach + 1, 0)",
        "return low, max(high - low + reach, 0)",
        "tests/operate/kernels/test_exact_sum.py",
    ),
    Mutant(
        "unsigned integers above 2**63 sort first",
        "operate/kernels/order.py",
        "        return (values ^ _TOP_BIT).view(np.int64)\n",
        "        return values.view(np.int64)\n",
        "tests/operate/kernels/test_order.py tests/operate/kernels/test_group.py",
    ),
    # Windows of time.
    Mutant(
        "a window that ends at the frontier stays open",
        "operate/aggregate/pane.py",
        "last = (upto_us - spec.range_us) // spec.slide_us\n",
        "last = (upto_us - spec.range_us - 1) // spec.slide_us\n",
        f"tests/operate/aggregate/test_pane.py {DETERMINISM}",
    ),
    Mutant(
        "a window is closed twice",
        "operate/aggregate/pane.py",
        "first = (above_us - spec.range_us) // spec.slide_us + 1",
        "first = (above_us - spec.range_us) // spec.slide_us",
        f"tests/operate/aggregate/test_pane.py {DETERMINISM}",
    ),
    Mutant(
        "the first pane of an open window is dropped",
        "operate/aggregate/pane.py",
        "window = (frontier_us - spec.range_us) // spec.slide_us + 1",
        "window = (frontier_us - spec.range_us) // spec.slide_us + 2",
        DETERMINISM,
    ),
    Mutant(
        "partials are dead a pane too early",
        "operate/aggregate/state.py",
        "return np.where(pane < segment.tag, pane >= self.needed, pane >= self.sealed)",
        "return np.where(pane < segment.tag, pane >= self.needed, pane > self.sealed)",
        "tests/operate/aggregate tests/driver/test_compactor.py tests/state/test_compaction.py",
    ),
    Mutant(
        "complete panes are dead with their partials",
        "operate/aggregate/state.py",
        "return no_complete and no_partial",
        "return no_partial",
        DETERMINISM,
    ),
    Mutant(
        "states of parts are merged in any order",
        "operate/aggregate/pane.py",
        'names = ["window_end", *(name for name, _ in spec.keys), PART]',
        'names = [PART, *(name for name, _ in spec.keys), "window_end"]',
        "tests/operate/aggregate/test_split_keys.py tests/operate/aggregate/test_pane.py",
    ),
    # Windows of tuples.
    Mutant(
        "groups of which all tuples are dead lose their count",
        "operate/tuple_window/state.py",
        "return _sorted(marked.filter(pa.array(alive | last)))",
        "return _sorted(marked.filter(pa.array(alive)))",
        "tests/operate/tuple_window",
    ),
    Mutant(
        "a window of tuples too few",
        "operate/tuple_window/window.py",
        "return np.maximum((counts - spec.rows) // spec.slide + 1, 0)",
        "return np.maximum((counts - spec.rows) // spec.slide, 0)",
        "tests/operate/tuple_window",
    ),
    Mutant(
        "tuples that hide others are not looked up",
        "operate/tuple_window/state.py",
        "        if segment.high >= HIDES:\n",
        "        if False:\n",
        "tests/operate/tuple_window",
    ),
    # Joins.
    Mutant(
        "pairs beyond 62 bits in the order of one word",
        "collect/pair.py",
        "if int(later.max()).bit_length() + bits <= _BITS:",
        "if int(later.max()).bit_length() + bits <= 2 * _BITS:",
        "tests/collect/test_pair.py",
    ),
    Mutant(
        "pairs of equal words in any order",
        "collect/pair.py",
        "        if (ranked[1:] != ranked[:-1]).all():\n            return order\n",
        "        return order\n",
        f"tests/collect/test_pair.py {JOINS}",
    ),
    Mutant(
        "stored tuples of another arrangement are merged with the others",
        "operate/join/state.py",
        "return [owner[s.buckets] if s.tag == way else None for s in segments]",
        "return [owner[s.buckets] for s in segments]",
        JOIN_STATE,
    ),
    Mutant(
        "stored tuples of another arrangement are searched as they are",
        "operate/join/stored.py",
        "known = [s for s in segments if s.tag == way]",
        "known = list(segments)",
        JOIN_STATE,
    ),
    Mutant(
        "stored tuples of another arrangement are forgotten",
        "operate/join/stored.py",
        "            if segment.tag != way:\n",
        "            if False:\n",
        JOIN_STATE,
    ),
    Mutant(
        "the arrangement does not tell the index",
        "operate/join/state.py",
        "repr((spec.method, arranged, self.routing, dealt))",
        "repr((spec.method, self.routing, dealt))",
        JOIN_STATE,
    ),
    Mutant(
        "a changed query deals by other keys than stored tuples were dealt by",
        "operate/join/state.py",
        "repr((spec.method, arranged, self.routing, dealt))",
        "repr((spec.method, self.routing))",
        CHANGE,
    ),
    Mutant(
        "a changed query takes state of another meaning",
        "plan/stored_name.py",
        "alike = [n for n, m in there.items() if m == meaning]",
        "alike = list(there)",
        CHANGE,
    ),
    Mutant(
        "a new condition on one side of a join is not asked of stored tuples",
        "plan/join_side.py",
        "        if self.kept is None:\n            return True\n",
        "        return True\n",
        CHANGE,
    ),
    Mutant(
        "a manifest does not say which query made it",
        "driver/change.py",
        "query=self._query, changes",
        "changes",
        CHANGE,
    ),
    Mutant(
        "the oldest tuple of a window of time is dropped",
        "operate/join/state.py",
        "ints(rows, self.column) >= self.needed",
        "ints(rows, self.column) > self.needed",
        f"{JOIN_STATE} {JOINS}",
    ),
    Mutant(
        "a tuple at the edge of a window is not met",
        "operate/join/search.py",
        "    first = np.searchsorted(run.coordinate, ask.low)\n",
        '    first = np.searchsorted(run.coordinate, ask.low, "right")\n',
        f"tests/operate/join/test_match.py {JOINS}",
    ),
    Mutant(
        "a window of tuples one too long",
        "operate/join/search.py",
        "np.searchsorted(mine.place, asking.place) - extent.rows",
        "np.searchsorted(mine.place, asking.place) - extent.rows - 1",
        f"tests/operate/join/test_match.py {JOINS}",
    ),
    Mutant(
        "an unknown bound finds what is equal to it",
        "operate/join/search.py",
        "            last[ask.unknown] = first[ask.unknown]\n",
        "            pass\n",
        f"tests/operate/join/test_match.py {JOINS}",
    ),
    # Compaction and retention.
    Mutant(
        "compaction takes the newest segments for the oldest",
        "state/compaction.py",
        "    for segment in group:\n        rows = read_segment",
        "    for segment in reversed(group):\n        rows = read_segment",
        "tests/state/test_compaction.py",
    ),
    Mutant(
        "compaction keeps dead rows",
        "state/compaction.py",
        "parts.append(rows.filter(pa.array(live(rows, segment), type=pa.bool_())))",
        "parts.append(rows)",
        "tests/state/test_compaction.py",
    ),
    Mutant(
        "a rewrite of segments that are gone is put in place",
        "driver/compactor.py",
        "            if all(s in current for s in group):\n",
        "            if any(s in current for s in group):\n",
        "tests/driver/test_compactor.py",
    ),
    Mutant(
        "segments side by side are merged as if one followed the other",
        "driver/compactor.py",
        "return all(a.high < b.low for a, b in pairwise(group))",
        "return True",
        "tests/driver/test_compactor.py",
    ),
    Mutant(
        "what the newest manifest lists is retired",
        "state/store.py",
        "sorted(older.names() - previous.names() - current.names())",
        "sorted(older.names() - previous.names())",
        STORE,
    ),
    Mutant(
        "what the manifest before lists is retired",
        "state/store.py",
        "sorted(older.names() - previous.names() - current.names())",
        "sorted(older.names() - current.names())",
        STORE,
    ),
    Mutant(
        "temporary files stay for ever",
        "state/store.py",
        "spare = entry.name in needed or (lasts and not is_temporary(entry.name))",
        "spare = entry.name in needed or lasts or is_temporary(entry.name)",
        STORE,
    ),
    Mutant(
        "a layer that hides nothing any more is kept from compaction",
        "operate/layered_state.py",
        "return segment.name != self.oldest or segment.high < HIDES",
        "return True",
        "tests/operate/process tests/operate/tuple_window tests/driver/test_bucket_state.py",
    ),
    # One owner at a time.
    Mutant(
        "an owner's manifest takes the place of another's",
        "whole_file.py",
        "disk.current().link(aside, path)",
        "disk.current().replace(aside, path)",
        OWNER,
    ),
    Mutant(
        "an owner's manifest has its name before it is synced",
        "whole_file.py",
        """            file.write(data)
            disk.current().sync(file)
""",
        """            file.write(data)
""",
        DURABLE,
    ),
    Mutant(
        "an owner's manifest has a name that is not synced",
        "whole_file.py",
        "    if named:\n",
        "    if False:\n",
        DURABLE,
    ),
    Mutant(
        "an owner takes a number that is free again",
        "state/store.py",
        "if not self._put(manifest) or self.numbers()[-1] > manifest.number:",
        "if not self._put(manifest):",
        OWNER,
    ),
    Mutant(
        "a start takes a number that is free again",
        "state/store.py",
        "if self.numbers()[-1] > entry.number:",
        "if False:",
        OWNER,
    ),
    Mutant(
        "an owner does not say so in the log",
        "state/store.py",
        "if newest.finished or self._entered(entry):",
        "if True:",
        OWNER,
    ),
    Mutant(
        "names do not have the owner",
        "state/name.py",
        'return f"{batch:08d}.{owner}"',
        'return f"{batch:08d}.0"',
        OWNER,
    ),
    Mutant(
        "an owner that was paused deletes what came since",
        "state/store.py",
        "kept, listed = self._found or (self.kept(), self._listed())",
        "kept, listed = self._found and self._found[0] or self.kept(), self._listed()",
        OWNER,
    ),
    Mutant(
        "an owner that was refused keeps the checkpoint",
        "state/store.py",
        "if entry is not None and self.numbers()[-1] == entry.number:",
        "if False:",
        OWNER,
    ),
    Mutant(
        "what did not fit into memory is not taken back",
        "driver/loop.py",
        "        self._inputs.undo()\n",
        "",
        "tests/driver/test_batch_limit.py",
    ),
    # Commit, recovery, output.
    Mutant(
        "a batch is shown before it is committed",
        "driver/loop.py",
        "        self._checkpoint.commit(manifest)\n",
        "        self._outlets.publish(manifest)\n        self._checkpoint.commit(manifest)\n",
        DURABLE,
    ),
    Mutant(
        "what is committed is not shown at the next start",
        "driver/loop.py",
        "lost = self._outlets.publish_again(manifest)",
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
        "sink/staging.py",
        "    if size != receipt.bytes:\n",
        "    if False:\n",
        "tests/sink/test_files.py",
    ),
    Mutant(
        "a committed batch that waits is swept away",
        "sink/staging.py",
        " and int(batch[1]) != keep:",
        ":",
        "tests/sink/test_files.py tests/driver/test_replay.py",
    ),
    Mutant(
        "counters count the newest batch alone",
        "driver/commit.py",
        "counters = Counter(previous.counters)",
        "counters = Counter[str]()",
        DETERMINISM,
    ),
    Mutant(
        "the first output's rows are counted",
        "driver/commit.py",
        "sum(o.count for o in outputs)",
        "first.count",
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
        "place = np.arange(len(ends)) - np.repeat(starts, lengths)",
        "place = np.arange(len(ends))",
        "tests/collect/test_window.py",
    ),
    # Processes.
    Mutant(
        "the oldest row of an entry counts",
        "operate/process/entry.py",
        "kept = order[np.append(last, True)[: len(order)]]",
        "kept = order[np.append(True, last)[: len(order)]]",
        "tests/operate/process/test_entry.py tests/operate/process/test_stored_mapping.py",
    ),
    Mutant(
        "a key that comes twice in a list is seen twice",
        "operate/process/advance.py",
        "_, first = np.unique(parents * ranks.size + ranks.codes, return_index=True)",
        "first = np.arange(len(parents))",
        "tests/operate/process/test_advance.py tests/operate/process/test_operator.py",
    ),
    # Segments and sources.
    Mutant(
        "the checksum of a segment is not looked at",
        "state/segment.py",
        "    _check(buffer, segment, store.files.full(segment.path))\n\n\ndef _slices",
        "\n\ndef _slices",
        "tests/state/test_segment.py tests/state/test_inspect.py",
    ),
    Mutant(
        "buckets beside those wanted are read",
        "state/segment.py",
        "for a, b in zip(edges[::2], edges[1::2], strict=True)",
        "for a, b in [(edges[0], edges[-1])]",
        "tests/state/test_segment.py",
    ),
    Mutant(
        "a line that is not complete is taken from a file that grows",
        "source/text_file.py",
        "self._index.grow(self._size, final, wary)",
        "self._index.grow(self._size, True, wary)",
        "tests/source/test_csv.py tests/source/test_json.py",
    ),
    Mutant(
        "positions in a block are those in the file",
        "source/text_file.py",
        "low, high = max(start - block.first, 0), min(stop - block.first, block.rows)",
        "low, high = 0, min(stop - block.first, block.rows)",
        "tests/source/test_csv.py tests/source/test_json.py",
    ),
    Mutant(
        "zeros in front of a number are cut behind the sample",
        "source/csv.py",
        "if fitted is not None and not self._codes_among_numbers(data, schema):",
        "if fitted is not None:",
        "tests/source/test_csv.py",
    ),
    Mutant(
        "a decimal may have more digits than its type",
        "source/csv.py",
        "column.validate(full=True)",
        "column.validate()",
        "tests/source/test_delimited.py",
    ),
    Mutant(
        "a file of another encoding is split by its bytes",
        "source/encoding.py",
        "if codec not in _WIDE:\n        return split(data, final)",
        "if True:\n        return split(data, final)",
        "tests/source/test_reading.py",
    ),
    Mutant(
        "a compressed file is taken for the same without a look inside",
        "source/text_file.py",
        "return digest_unpacked(self.path, self._facts.packing, length)",
        "return self._index.digest",
        "tests/source/test_reading.py",
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
        "driver/side.py",
        'known["rows"] += part.slice.late_rows',
        'known["rows"] = part.slice.late_rows',
        "tests/cli/test_late.py",
    ),
    Mutant(
        "a checkpoint knows subqueries by the names in the script",
        "driver/commit.py",
        "job.subquery.key: recorded",
        "job.subquery.name: recorded",
        "tests/cli/test_names.py",
    ),
    # On a cluster.
    Mutant(
        "workers elsewhere are to find a folder of the driver",
        "execute/spark/setting.py",
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
        "tests/spark/test_executor.py",
    ),
    # Runs that go on another time.
    Mutant(
        "new input on a finished checkpoint is ignored",
        "driver/finished.py",
        "if not new:",
        "if True:",
        "tests/cli/test_scheduled.py",
    ),
    Mutant(
        "a run over what is available finishes its windows",
        "driver/connection.py",
        "lasts = options.follow or options.available_now",
        "lasts = options.follow",
        "tests/property/test_available_now.py",
    ),
    Mutant(
        "a batch without rows is written",
        "driver/outlet.py",
        "if output.receipts is None and output.rows.num_rows:",
        "if output.receipts is None:",
        "tests/driver/test_trigger.py",
    ),
    Mutant(
        "a signal aborts the batch at hand",
        "cli/stop.py",
        "signals = 0",
        "signals = 1",
        "tests/cli/test_watch.py tests/cli/test_stop.py",
    ),
)
