"""How far more threads help, by virtual and by pure shared-nothing parallelism: STRETCH's model.

Section 8 of STRETCH: tuples pass three stages, `t^I` that takes them in, `T^P` that processes them
with n threads, and `t^O` that puts the results in order. Adding threads helps as long as `T^P` is
the slowest. Beside the work itself n threads cost something at both ends: pure shared-nothing
(`P_SN`) routes each tuple to them (`d^R_n`) and merges what they give (`d^M_n`), virtual
shared-nothing (`V_SN`) has them read one shared structure, which is not free either (`d^C_n`), and
merges what is sorted already. Here `V_SN` are instances of one host that map the same files, `P_SN`
are executors that exchange tuples by a shuffle, for joins over a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2


@dataclass(frozen=True)
class StageWork:
    """Seconds for each tuple with one thread: the paper's `d^I`, `d^P` and `d^O`."""

    input_s: float
    process_s: float
    output_s: float


@dataclass(frozen=True)
class Overhead:
    """What n threads cost more, in seconds for each tuple; grows as in the paper's Table 1.

    `hand_out_s` is for each thread: n times it is `d^R_n` of P_SN, or `d^C_n` of V_SN. `merge_s` is
    for each comparison of a merge: n * log2(n) times it is `d^M_n`.
    """

    hand_out_s: float
    merge_s: float


def pure(input_s: float) -> Overhead:
    """That of P_SN in Table 1: `d^R_n = 0.1 * d^I * n` and `d^M_n = 0.1 * d^I * n log(n)`."""
    return Overhead(0.1 * input_s, 0.1 * input_s)


def virtual(input_s: float) -> Overhead:
    """That of V_SN in Table 1: a tenth of P_SN's, `d^C_n` instead of `d^R_n`."""
    return Overhead(0.01 * input_s, 0.01 * input_s)


@dataclass(frozen=True)
class Stages:
    """Seconds for each tuple in the stages with n threads.

    `input_s` is `d^I + d^R_n` (P_SN) or `d^I + d^C_n` (V_SN), `process_s` is `d^P_n`, and
    `output_s` is `d^O + d^M_n`.
    """

    input_s: float
    process_s: float
    output_s: float

    @property
    def slowest_s(self) -> float:
        """`max(d^I + d^R_n, d^P_n, d^O + d^M_n)`."""
        return max(self.input_s, self.process_s, self.output_s)

    @property
    def rate(self) -> float:
        """Tuples a second where the stages work side by side, each on other tuples."""
        return 1 / self.slowest_s

    @property
    def batch_rate(self) -> float:
        """Tuples a second where a batch passes one stage after the other."""
        return 1 / (self.input_s + self.process_s + self.output_s)

    @property
    def scales(self) -> bool:
        """Whether one more thread helps: `d^P_n` is the slowest."""
        return self.process_s == self.slowest_s


def stages(work: StageWork, overhead: Overhead, threads: int) -> Stages:
    """The stages with n threads, where `d^P_n = d^P / n`."""
    return Stages(
        work.input_s + overhead.hand_out_s * threads,
        work.process_s / threads,
        work.output_s + overhead.merge_s * threads * log2(threads),
    )


def scales_to(work: StageWork, overhead: Overhead) -> int:
    """The highest n so that `d^P_n` is still the slowest; 0 where it never is.

    Both ends grow with n and `d^P_n` falls, so that it ends.
    """
    threads = 0
    while stages(work, overhead, threads + 1).scales:
        threads += 1
    return threads


def scales_better(one: Stages, other: Stages) -> bool:
    """Whether one way still scales with as many threads as the other does not with.

    The paper's condition for V_SN (`one`) against P_SN: `d^I + d^C_n < d^P_n < d^I + d^R_n` and
    `d^O + d^M_n < d^P_n < d^O + d^M_n` of the other. It wants both ends of the other to be the
    slower; one of them is enough for it not to scale, see `Stages.scales`.
    """
    within = max(one.input_s, one.output_s) < one.process_s
    return within and one.process_s < min(other.input_s, other.output_s)


def overhead_of(measured: Stages, work: StageWork, threads: int) -> Overhead:
    """The overhead with which the model has what was measured at both ends with n threads.

    What was measured below the work itself is no overhead.
    """
    merges = threads * log2(threads)
    return Overhead(
        max(measured.input_s - work.input_s, 0.0) / threads,
        max(measured.output_s - work.output_s, 0.0) / merges if merges else 0.0,
    )
