"""Results as rows of a table of Postgres: each batch and its number in one transaction.

- `sink`: the calls of the protocol
- `table`: the table, and those of late and rejected tuples
- `ledger`: which batch the table has, and whose it is
- `column`: the types of columns, and whether those of a table fit
- `copy_text`: rows as the text that COPY takes
"""

from tidegate.sink.postgres.sink import PostgresSink

__all__ = ["PostgresSink"]
