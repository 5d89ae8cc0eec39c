"""Mistakes in routing, switches, and the load that they are decided by."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
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
    Mutant(
        "an option goes before what somebody asks for",
        "elastic/switchboard.py",
        "wanted = {**scheduled, **self._waiting}",
        "wanted = {**self._waiting, **scheduled}",
        "tests/elastic/test_switchboard.py",
    ),
    Mutant(
        "a batch that is tried again takes what came meanwhile",
        "elastic/switchboard.py",
        "            if batch == self._batch:\n                return self._taken\n",
        "",
        "tests/elastic/test_switchboard.py",
    ),
    Mutant(
        "any user may ask over the control socket",
        "control/server.py",
        "if user not in (None, own, 0):",
        "if False:",
        "tests/control/test_server.py",
    ),
    Mutant(
        "tuples are dealt to instances that own no bucket",
        "route/round_robin.py",
        "owners = np.unique(mapping.owner_array)",
        "owners = np.arange(mapping.instances)",
        "tests/property/test_switches.py",
    ),
    Mutant(
        "a partitioner goes on with what it knew before a switch",
        "operate/aggregate/ledger.py",
        "if held is not None and held.mapping.epoch == work.mapping.epoch:",
        "if held is not None:",
        "tests/property/test_partitioners.py tests/operate/aggregate/test_routing.py",
    ),
    Mutant(
        "a partitioner forgets the place of a key where windows slide",
        "route/load_aware.py",
        "earlier = ledger.tallies.get(period - 1) if looks_back else None",
        "earlier = None",
        "tests/route/test_load_aware.py",
    ),
    Mutant(
        "an upstream has another name in every batch",
        "execute/job.py",
        """{'edge' if edge else split.source}""",
        """{split.source}""",
        "tests/operate/aggregate/test_routing.py",
    ),
    Mutant(
        "partials are placed in the order of their keys",
        "operate/aggregate/pane.py",
        "units = np.argsort(_first_rows(groups))",
        "units = np.arange(groups.n)",
        "tests/operate/aggregate/test_routing.py",
    ),
    Mutant(
        "of equal candidates the last is chosen",
        "route/choice_loop.py",
        "if loads[candidates[j]] < loads[best]:",
        "if loads[candidates[j]] <= loads[best]:",
        "tests/route/test_load_aware.py",
    ),
    Mutant(
        "old windows are told of by some of the instances that have them",
        "driver/window_log.py",
        "for end_us in sorted(found)[-MOST_WINDOWS:]:",
        "for end_us in sorted(found):",
        "tests/driver/test_window_log.py",
    ),
    Mutant(
        "the tuples of a window are told although some came before the run",
        "driver/subquery.py",
        "return MIN_US if migration is None else migration.until_us",
        "return MIN_US",
        "tests/driver/test_window_log.py",
    ),
    Mutant(
        "what a partial stands for is counted as one tuple",
        "operate/aggregate/pane.py",
        "router.sent.count(number, bucket, groups.counts)",
        "router.sent.count(number, bucket)",
        "tests/property/test_window_figures.py",
    ),
    Mutant(
        "instances whose buckets have moved go on with what they have in memory",
        "driver/subquery.py",
        "frozenset(i for i in range(mapping.instances) if i not in changed)",
        "frozenset(range(mapping.instances))",
        "tests/property/test_switches.py",
    ),
    Mutant(
        "after a switch tuples of other instances are found as well",
        "operate/join/search.py",
        "    kept = part.has(run.searched.rows(place))\n",
        "    kept = np.ones(len(place), np.bool_)\n",
        "tests/property/test_switches.py",
    ),
    # The load of instances and buckets.
    Mutant(
        "every bucket of an instance has the same load",
        "operate/bucket_work.py",
        "    idle = total == 0\n",
        "    idle = total >= 0\n",
        "tests/driver/test_bucket_load.py",
    ),
    Mutant(
        "what a query waits for input counts as busy",
        "driver/load_watch.py",
        "period_s=seconds + waited_s",
        "period_s=seconds",
        "tests/driver/test_observe.py",
    ),
)
