"""What each part of a stored state depends on, as lines that a later query must have too.

For joins and processes. An operator names the parts of its state (`Operator.keepers`), and a part
without a row in the table here cannot be lowered: nothing is stored that is not compared when the
query changes. The state of an aggregate depends as a whole on what it groups (`AskedAggregate`), on
its window and on its partitioner, whichever parts it has. Columns of a state are compared one by
one, as `Record.columns`, because a later query may use fewer of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tidegate.expression.tree import Expr, describe, exact_text, renamed
from tidegate.operate.asof.state import NEAREST
from tidegate.operate.dedup.last import LAST_TUPLES
from tidegate.operate.dedup.operator import FIRST_TUPLES
from tidegate.operate.join.key_count import FIRST
from tidegate.operate.join.mark import MATCHED
from tidegate.operate.join.operator import StreamJoin, qualified_name
from tidegate.operate.join.placement.grid import GRIDS
from tidegate.operate.join.state import SIDES
from tidegate.operate.operator import Operator
from tidegate.operate.over.operator import RANGED
from tidegate.operate.process.operator import BUCKETS
from tidegate.operate.tuple_window.state import TUPLES
from tidegate.plan.compatibility.query_record import Texts


@dataclass(frozen=True)
class Origin:
    """What the rows of a state were made of, in the words of the query.

    `inputs` say where tuples came from and which of them counted, `clauses` what else the query
    asked for that decides what is kept. `texts` are the columns of the operator.
    """

    inputs: Sequence[str]
    clauses: Sequence[str]
    texts: Texts


def state_lines(operator: Operator, origin: Origin) -> tuple[str, ...]:
    """What must be the same for a later query to go on with the state; none where nothing is kept.

    Lines of an input that is there twice are there twice: parts that depend on the same are asked
    once.
    """
    asked = dict.fromkeys(_DEPENDS[part] for part in operator.state.keepers)
    return tuple(line for lines in asked for line in lines(operator, origin))


def _of_inputs(operator: Operator, origin: Origin) -> Iterator[str]:
    """The tuples of the sides of a join, the objects of a process, the tuples of an as-of join."""
    yield from (*origin.inputs, *origin.clauses)


def _of_first_tuples(operator: Operator, origin: Origin) -> Iterator[str]:
    """How many first tuples the keys of a join have; which tuples are stored follows from it.

    Conditions on one side decide which are first: they are among the inputs.
    """
    assert isinstance(operator, StreamJoin)
    assert operator.sieve is not None
    for equality in operator.sieve.equalities:
        both = [_written(e, origin) for e in (equality.left_value, equality.right_value)]
        sign = "<=>" if equality.null_safe else "="
        yield f"first tuples by left {f' {sign} right '.join(both)}"


def _of_matches(operator: Operator, origin: Origin) -> Iterator[str]:
    """Which tuples have a partner: that depends on the whole condition."""
    assert isinstance(operator, StreamJoin)
    yield operator.spec.kind.summary
    for conjunct in operator.spec.predicate:
        yield f"partners by {_written(conjunct, origin)}"
    if operator.spec.function is not None:
        yield f"partners by the function {qualified_name(operator.spec.function.call)}"


def _of_nothing(operator: Operator, origin: Origin) -> Iterator[str]:
    """Grids of cells: a join that compares other values begins with others."""
    yield from ()


_DEPENDS: dict[str, Callable[[Operator, Origin], Iterator[str]]] = {
    **dict.fromkeys(SIDES, _of_inputs),
    FIRST: _of_first_tuples,
    GRIDS: _of_nothing,
    **dict.fromkeys(MATCHED, _of_matches),
    BUCKETS: _of_inputs,
    **dict.fromkeys((NEAREST, FIRST_TUPLES, LAST_TUPLES, RANGED, TUPLES), _of_inputs),
}


def _written(expression: Expr, origin: Origin) -> str:
    """An expression for people, with a mark that no other one has: casts and long parts are cut."""
    named = renamed(expression, origin.texts)
    mark = hashlib.sha256(exact_text(named).encode()).hexdigest()[:8]
    return f"{describe(named)} [{mark}]"
