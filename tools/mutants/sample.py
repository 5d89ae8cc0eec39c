"""Mistakes in samples and in what is said from them."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "sources share the priorities of a sample",
        "approx/priority_loop.py",
        "before = _mixed(_mixed(seed) ^ np.uint64(source))",
        "before = _mixed(_mixed(seed))",
        "tests/approx/test_sample.py",
    ),
    Mutant(
        "a sample is one depth deeper than leaves enough tuples",
        "approx/sample.py",
        "np.count_nonzero(below >= k, axis=1) - 1, 0)",
        "np.count_nonzero(below >= k, axis=1), 0)",
        "tests/approx/test_sample.py",
    ),
    Mutant(
        "a window of exactly so many tuples at a depth is sampled above it",
        "approx/sample.py",
        "enough = before[last[windows]] - before[first[windows]] >= k",
        "enough = before[last[windows]] - before[first[windows]] > k",
        "tests/approx/test_sample.py",
    ),
    Mutant(
        "tuples of which all arguments are NULL are sampled",
        "operate/aggregate/sample/sample_state.py",
        "masks = [valid(column) for column in arguments] if self.skips_null else []",
        "masks = [valid(column) for column in arguments] if not arguments else []",
        "tests/operate/aggregate/test_sample_state.py tests/operate/aggregate/test_coverage.py",
    ),
    Mutant(
        "a sample that disagrees with the exact means of its arguments is relied on",
        "operate/aggregate/bounded/user_aggregate.py",
        "relied_on = relied_on & (found.agrees(sizes) | whole)",
        "relied_on = relied_on | whole",
        "tests/operate/aggregate/test_coverage.py",
    ),
    Mutant(
        "thinned samples lose tuples that belong to them",
        "operate/aggregate/sample/thinning.py",
        "deep = depth >= np.repeat(least, list_sizes(states[1]))",
        "deep = depth > np.repeat(least, list_sizes(states[1]))",
        "tests/operate/aggregate/test_thinning.py tests/property/test_bounds.py",
    ),
    Mutant(
        "a merged sample forgets the tuples that were not sampled",
        "operate/aggregate/sample/sample_state.py",
        "tuples = sum_integers(groups, states[0].to_numpy())\n",
        "tuples = np.bincount(groups.codes, list_sizes(states[1]), groups.n).astype(np.int64)\n",
        "tests/operate/aggregate/test_sample_state.py",
    ),
    Mutant(
        "samples are not corrected for a finite population",
        "approx/bound.py",
        "return 1 - self.rows / np.maximum(self.tuples, 1)",
        "return np.where(self.whole, 0.0, 1.0)",
        "tests/approx/test_bound.py",
    ),
    Mutant(
        "the skewness of samples is not looked at",
        "approx/bound.py",
        "enough = moments.n >= np.maximum(least(alpha), SKEW * _skewness(kind, moments) ** 2)",
        "enough = moments.n >= least(alpha)",
        "tests/approx/test_promise.py",
    ),
    Mutant(
        "samples of few rows are relied on",
        "approx/bound.py",
        "RARE = 0.01",
        "RARE = 0.1",
        "tests/approx/test_promise.py tests/approx/test_bound.py",
    ),
    Mutant(
        "with the metric max every interval of a window is made by itself",
        "approx/decision.py",
        "if self.metric is not Metric.MAX:",
        "if self.metric is not None:",
        "tests/approx/test_promise.py tests/approx/test_decision.py",
    ),
    Mutant(
        "the bound of a rank has one side only",
        "approx/rank.py",
        "spread = sqrt(log(2 / (1 - confidence)) / 2)",
        "spread = sqrt(log(1 / (1 - confidence)) / 2)",
        "tests/approx/test_rank.py",
    ),
    Mutant(
        "small groups lose what they cannot use of a budget of rows",
        "approx/allot.py",
        "        open_ = open_ & ~full\n",
        "        break\n",
        "tests/approx/test_allot.py",
    ),
)
