"""Metrics of a run: `registry` is the table, `metric` says what can be declared, `text` writes it.

The report of a batch, the summary, the status, the live view and their JSON iterate over the table.
A new metric is one file here and one line in `registry.py`.
"""
