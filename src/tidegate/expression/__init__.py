"""Typed expressions as plain data: what queries say and kernels run.

- `tree`: columns, constants and calls with their types, and what can be told of them
- `kind`: families of types, and which of them convert into which
- `digits`: how many digits the decimals have that arithmetic gives
- `reading`: text read as a value, one at a time
- `constant`: what is known of a constant before a kernel computes it
- `pattern`: the parts of a LIKE pattern
"""
