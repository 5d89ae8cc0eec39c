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
        "a sample leaves out what ties with its last tuple",
        "approx/sample_loop.py",
        "priority[i] <= reach[g]",
        "priority[i] < reach[g]",
        "tests/approx/test_sample.py",
    ),
    Mutant(
        "a sample below a rate is not filled up to k",
        "approx/sample_loop.py",
        "elif below[g] >= k:",
        "elif below[g] > 0:",
        "tests/approx/test_sample.py",
    ),
    Mutant(
        "the sample of one group keeps what it has noted and outgrown",
        "approx/sample_loop.py",
        "if priority[noted[j]] <= heap[0]:",
        "if priority[noted[j]] <= heap[0] or j < k:",
        "tests/approx/test_sample.py",
    ),
    Mutant(
        "a merged sample forgets the tuples that were not sampled",
        "operate/aggregate/sampled.py",
        "tuples = sum_integers(groups, states[0].to_numpy())\n        rows = rows_of(states)",
        "rows = rows_of(states)\n        tuples = np.bincount(groups.codes, rows.sizes, groups.n)"
        ".astype(np.int64)",
        "tests/operate/aggregate/test_sampled.py",
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
