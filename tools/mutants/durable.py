"""Mistakes in what outlives a loss of power."""

from __future__ import annotations

from mutants.mutant import DURABLE, Mutant

MUTANTS = (
    Mutant(
        "files are not synced",
        "storage/whole_file.py",
        'if due is not None and sync != "nothing":',
        "if False:",
        DURABLE,
    ),
    Mutant(
        "what is gathered is not synced",
        "storage/whole_file.py",
        "        due.sync()\n        named",
        "        named",
        DURABLE,
    ),
    Mutant(
        "half of what is gathered is synced",
        "storage/durable.py",
        "    for done in beside:\n        done.result()\n",
        "",
        "tests/test_durable.py",
    ),
    Mutant(
        "a batch is committed before what its tasks wrote is synced",
        "driver/pipeline.py",
        "            due.add_names(outcome.due)\n",
        "            pass\n",
        "tests/execute/test_unsynced.py",
    ),
    Mutant(
        "names in the checkpoint are not synced",
        "storage/whole_file.py",
        'if sync == "folder":',
        "if False:",
        DURABLE,
    ),
    Mutant(
        "parts of results are not synced",
        "storage/whole_file.py",
        "    if due is not None:\n        due.add_file(path)\n",
        "",
        DURABLE,
    ),
    Mutant(
        "names of parts are not synced",
        "sink/folder/staging.py",
        "            sync_names(inner)\n",
        "            pass\n",
        DURABLE,
    ),
    Mutant(
        "the name of a staged batch is not synced",
        "sink/folder/staging.py",
        "        sync_names(self.folder)\n",
        "",
        DURABLE,
    ),
    Mutant(
        "the name of a published batch is not synced",
        "sink/folder/files.py",
        "                disk.current().sync_folder(self.path)\n",
        "",
        DURABLE,
    ),
    Mutant(
        "the name of a side output is not synced",
        "sink/folder/files.py",
        "        disk.current().sync_folder(target.parent)\n",
        "",
        DURABLE,
    ),
)
