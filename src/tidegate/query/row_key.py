"""Says which columns tell the rows of a result apart, for sinks that keep the newest of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidegate.query.name import NamedExpr, is_column


@dataclass(frozen=True)
class RowKey:
    """A row stands for all before it that are equal in the columns `names`.

    Where there is no such column, `lack` says why. `replaces` is whether there can be such rows
    before it; else each key has one row.
    """

    names: tuple[str, ...] = ()
    lack: str = "rows that each stand for themselves"
    replaces: bool = False

    def shown(self, columns: Sequence[NamedExpr]) -> RowKey:
        """The same in the columns of a select list, which must have each of them."""
        found = []
        for name in self.names:
            shown = [new for new, expression in columns if is_column(expression, [name])]
            if not shown:
                return RowKey(lack=f"rows without {name}, which tells them apart")
            found.append(shown[0])
        return replace(self, names=tuple(found))

    def kept(self, conditions: Iterable[exp.Expression]) -> RowKey:
        """The same behind a filter, which must let pass all rows of a key or none."""
        named = {c.name for e in conditions for c in e.find_all(exp.Column)}
        if self.replaces and not named <= set(self.names):
            return RowKey(lack="a filter that a row may pass, and the next one of its key not")
        return self

    def first(self) -> RowKey:
        """The same where only some rows of each window are kept: those of a key may be or not."""
        if self.replaces:
            return RowKey(lack="a limit that a row may be within, and the next one of its key not")
        return self


NO_KEY = RowKey()
