"""Mistakes in kernels: exact sums, decimals, groups."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "sliced decimals are read from the start of their column",
        "operate/kernels/decimal.py",
        "low, high = words[value.offset : value.offset + len(value)].T",
        "low, high = words[: len(value)].T",
        "tests/operate/kernels/test_decimal.py",
    ),
    Mutant(
        "sliced decimals are summed from the start of their column",
        "operate/kernels/total.py",
        "words = words.reshape(-1, 4)[column.offset : column.offset + len(column)]",
        "words = words.reshape(-1, 4)[: len(column)]",
        "tests/operate/kernels/test_total.py",
    ),
    Mutant(
        "limbs of totals are not carried",
        "operate/kernels/total.py",
        "        result[i + 1] += result[i] >> 32\n",
        "",
        "tests/operate/kernels/test_total.py",
    ),
    Mutant(
        "sums in turns take the codes of the first turn",
        "operate/kernels/exact_sum.py",
        "codes[rows] - first, *chosen",
        "codes[rows], *chosen",
        "tests/operate/kernels/test_exact_sum.py",
    ),
    Mutant(
        "kept sums of a slice are those of the column",
        "operate/kernels/exact_sum.py",
        "len(sums) + 1, 8 * sums.offset)",
        "len(sums) + 1)",
        "tests/operate/kernels/test_exact_sum.py",
    ),
    Mutant(
        "a sum has no room for its last carry",
        "operate/kernels/exact_sum.py",
        "return low, max(high - low + reach + 1, 0)",
        "return low, max(high - low + reach, 0)",
        "tests/operate/kernels/test_exact_sum.py",
    ),
    Mutant(
        "unsigned integers above 2**63 sort first",
        "operate/kernels/order.py",
        "        return (values ^ _TOP_BIT).view(np.int64)\n",
        "        return values.view(np.int64)\n",
        "tests/operate/kernels/test_order.py tests/operate/kernels/test_group.py",
    ),
)
