"""What each part of a stored state depends on, as lines that a later query must have too.

The one place where that is said. An operator names the parts of its state (`Operator.keepers`), and
a part without a row in the table here cannot be lowered: nothing is stored that is not compared
when the query changes. Columns of a state are compared one by one, as `Record.columns`, because a
later query may use fewer of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.duration import rows_text, window_text
from tidegate.expression.tree import Expr, describe, exact_text, renamed
from tidegate.operate.aggregate.balanced.survey import SURVEY
from tidegate.operate.aggregate.choice import CHOICES
from tidegate.operate.aggregate.ledger import LEDGER
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.state import PANES
from tidegate.operate.join.concept import FIRST
from tidegate.operate.join.operator import StreamJoin
from tidegate.operate.join.state import SIDES
from tidegate.operate.operator import Operator
from tidegate.operate.process.operator import BUCKETS
from tidegate.operate.tuple_window.operator import TupleAggregate
from tidegate.operate.tuple_window.state import TUPLES
from tidegate.plan.recorded import Texts
from tidegate.route.hash import Hash
from tidegate.route.registry import text_of
from tidegate.schema import type_name


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
    asked = dict.fromkeys(_DEPENDS[part] for part in operator.keepers())
    return tuple(line for lines in asked for line in lines(operator, origin))


def _of_windows(operator: Operator, origin: Origin) -> Iterator[str]:
    """Panes, and what is counted beside them to place tuples and to trim groups."""
    assert isinstance(operator, WindowAggregate)
    spec, partitioner = operator.spec, operator.partitioner
    yield from (*origin.inputs, *origin.clauses)
    yield from _keys(spec.keys, origin)
    yield f"window {window_text(spec.range_us, spec.slide_us)}"
    if not isinstance(partitioner, Hash):
        yield f"partitioner {text_of(partitioner)}"


def _of_tuples(operator: Operator, origin: Origin) -> Iterator[str]:
    """The tuples of windows that count them."""
    assert isinstance(operator, TupleAggregate)
    yield from (*origin.inputs, *origin.clauses)
    yield from _keys(operator.spec.keys, origin)
    yield f"window {rows_text(operator.spec.rows, operator.spec.slide)}"


def _of_inputs(operator: Operator, origin: Origin) -> Iterator[str]:
    """The tuples of the sides of a join, the objects of a process."""
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


_DEPENDS: dict[str, Callable[[Operator, Origin], Iterator[str]]] = {
    PANES: _of_windows,
    LEDGER: _of_windows,
    CHOICES: _of_windows,
    SURVEY: _of_windows,
    TUPLES: _of_tuples,
    **dict.fromkeys(SIDES, _of_inputs),
    FIRST: _of_first_tuples,
    BUCKETS: _of_inputs,
}


def _keys(keys: Sequence[tuple[str, pa.DataType]], origin: Origin) -> Iterator[str]:
    yield from (f"group by {origin.texts[name]} ({type_name(type_)})" for name, type_ in keys)


def _written(expression: Expr, origin: Origin) -> str:
    """An expression for people, with a mark that no other one has: casts and long parts are cut."""
    named = renamed(expression, origin.texts)
    mark = hashlib.sha256(exact_text(named).encode()).hexdigest()[:8]
    return f"{describe(named)} [{mark}]"
