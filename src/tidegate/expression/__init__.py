"""Typed expressions as plain data: what queries build and kernels run.

- `tree`: columns, constants and calls with their types, and functions over these trees
- `kind`: families of types, and which of them convert into which
- `digits`: the precision and scale of decimal results
- `reading`: text read as a value, one at a time
- `constant`: constants computed before a kernel runs
- `pattern`: the parts of a LIKE pattern
"""
