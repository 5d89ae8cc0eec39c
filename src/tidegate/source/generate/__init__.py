"""Streams computed from a seed and a position: the generators of `generator:NAME?...`.

Any range of any columns costs only itself and equals the same range of the whole.

- `flow`: the parameters that all streams share
- `span`: the draws, event times and keys of a range; `workload`: a generator of such ranges
- `draw`, `zipf`, `label`: random numbers, skewed ranks and texts
- `taxi`, `calls`, `tasks`, `packets`, `trades`, `band`, `tweets`, `tpch`: the kinds of rows
"""
