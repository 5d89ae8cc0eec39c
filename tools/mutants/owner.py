"""Mistakes in the one owner of a checkpoint."""

from __future__ import annotations

from mutants.mutant import DURABLE, OWNER, Mutant

MUTANTS = (
    Mutant(
        "an owner's manifest takes the place of another's",
        "storage/whole_file.py",
        "disk.current().link(aside, path)",
        "disk.current().replace(aside, path)",
        OWNER,
    ),
    Mutant(
        "an owner's manifest has its name before it is synced",
        "storage/whole_file.py",
        "        due.add_file(aside)\n",
        "",
        DURABLE,
    ),
    Mutant(
        "an owner's manifest has a name that is not synced",
        "storage/whole_file.py",
        "    if named:\n",
        "    if False:\n",
        DURABLE,
    ),
    Mutant(
        "an owner takes a number that is free again",
        "state/owner.py",
        "if not put or numbers()[-1] > manifest.number:",
        "if not put:",
        OWNER,
    ),
    Mutant(
        "a start takes a number that is free again",
        "state/owner.py",
        "if self._store.numbers()[-1] > entry.number:",
        "if False:",
        OWNER,
    ),
    Mutant(
        "an owner does not say so in the log",
        "state/owner.py",
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
        "kept, listed = self._found or (self.kept(), self.listed())",
        "kept, listed = self._found and self._found[0] or self.kept(), self.listed()",
        OWNER,
    ),
    Mutant(
        "an owner that was refused keeps the checkpoint",
        "state/owner.py",
        "if entry is not None and self._store.numbers()[-1] == entry.number:",
        "if False:",
        OWNER,
    ),
    Mutant(
        "what did not fit into memory is not taken back",
        "driver/pipeline.py",
        "        self.inputs.undo()\n",
        "",
        "tests/driver/test_batch_limit.py",
    ),
)
