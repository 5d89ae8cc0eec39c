"""Streams computed from a seed and a position: the generators of `generator:NAME?...`.

Any range of any columns costs only itself and equals the same range of the whole.

- `flow`: the parameters that streams have in common
- `span`: a range of positions: its draws, event times and keys; `workload`: a kind of rows
- `draw`, `zipf`, `label`: numbers, skewed ranks and texts
- `taxi`, `calls`, `tasks`, `packets`, `trades`, `band`, `tweets`, `tpch`: the kinds of rows
"""
