"""Mistakes in kernels: exact sums, decimals, groups."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "sliced decimals are read from the start of their column",
        "operate/kernels/expression/decimal.py",
        "low, high = words[value.offset : value.offset + len(value)].T",
        "low, high = words[: len(value)].T",
        "tests/operate/kernels/expression/test_decimal.py",
    ),
    Mutant(
        "sliced decimals are summed from the start of their column",
        "operate/kernels/sum/total.py",
        "words = words.reshape(-1, 4)[column.offset : column.offset + len(column)]",
        "words = words.reshape(-1, 4)[: len(column)]",
        "tests/operate/kernels/sum/test_total.py",
    ),
    Mutant(
        "limbs of totals are not carried",
        "operate/kernels/sum/total.py",
        "        result[i + 1] += result[i] >> 32\n",
        "",
        "tests/operate/kernels/sum/test_total.py",
    ),
    Mutant(
        "sums in turns take the codes of the first turn",
        "operate/kernels/sum/exact_sum.py",
        "codes[rows] - first, *chosen",
        "codes[rows], *chosen",
        "tests/operate/kernels/sum/test_exact_sum.py",
    ),
    Mutant(
        "kept sums of a slice are those of the column",
        "operate/kernels/sum/exact_sum.py",
        "len(sums) + 1, 8 * sums.offset)",
        "len(sums) + 1)",
        "tests/operate/kernels/sum/test_exact_sum.py",
    ),
    Mutant(
        "a sum has no room for its last carry",
        "operate/kernels/sum/exact_sum.py",
        "return low, max(high - low + reach + 1, 0)",
        "return low, max(high - low + reach, 0)",
        "tests/operate/kernels/sum/test_exact_sum.py",
    ),
    Mutant(
        "unsigned integers above 2**63 sort first",
        "operate/kernels/order.py",
        "        return (values ^ _TOP_BIT).view(np.int64)\n",
        "        return values.view(np.int64)\n",
        "tests/operate/kernels/test_order.py tests/operate/kernels/test_group.py",
    ),
    Mutant(
        "the second argument of NANVL is evaluated on all rows",
        "operate/kernels/expression/condition.py",
        '"nanvl": ArgumentTurns('
        "lambda _: (Turn(0, _not_nan, 0), Turn(1, _everyone, 1)), guards=True),\n",
        "",
        "tests/operate/kernels/expression/test_condition.py",
    ),
    Mutant(
        "what fails inside what fails is tried on all rows first",
        "operate/kernels/expression/condition.py",
        "    careful = failure is not None\n",
        "    careful = False\n",
        "tests/operate/kernels/expression/test_condition.py",
    ),
    Mutant(
        "FILTER goes on after a condition that is NULL",
        "sql/call.py",
        "written.conditions += conjuncts(wrapper.expression.this)",
        "written.conditions.append(wrapper.expression.this)",
        "tests/session/test_guards.py",
    ),
    Mutant(
        "LAST with FILTER is that of the first tuple",
        "operate/aggregate/functions/extreme_by.py",
        "tied[order if self.last else order[::-1]]",
        "tied[order[::-1]]",
        "tests/operate/aggregate/test_pane.py",
    ),
    Mutant(
        "a list is in the order in which partial results are merged",
        "operate/aggregate/functions/collection.py",
        "if not _ascending(sort_keys):",
        "if groups.n < 0:",
        "tests/operate/aggregate/test_pane.py",
    ),
    Mutant(
        "an argument of CORR is evaluated beside a NULL",
        "query/aggregate.py",
        "if a is not first and can_fail(a) else a",
        "if False else a",
        "tests/session/test_guards.py",
    ),
)
