"""What is changed from run to run, and for which engine it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

QUERIES = ["sliding_avg", "first_last", "join", "dedup", "late", "top"]
RUNS = ["again", "batches", "parallelism", "b behind", "b first", "rescale", "kill"]


@dataclass(frozen=True)
class Variation:
    """A run that differs from the first one of its engine; `rescale` is the parallelism after it.

    `cut` is in what the engine is cut by: rows, or files of three seconds of a source.
    """

    name: str
    cut: int | None = None
    parallelism: int = 2
    shuffles: int = 2
    arrival: str = "in step"
    rescale: int | None = None
    kill: bool = False
    beside: str = "reference"
    """The run that this one is compared with: the one that differs in nothing else."""

    @property
    def slug(self) -> str:
        return self.name.replace(" ", "-")

    def settings(self) -> dict[str, Any]:
        names = ("cut", "parallelism", "shuffles", "arrival", "rescale", "kill")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Engine:
    """An engine: its package, its queries and its runs, of which the first is the reference.

    `here` is one that the Python of the benchmark has; `one_size` one whose parallelism is that of
    the process; one that `kills_itself` is started again by the harness, as its operator would.
    """

    title: str
    package: str
    variations: tuple[Variation, ...]
    queries: tuple[str, ...] = tuple(QUERIES)
    here: bool = False
    one_size: bool = False
    kills_itself: bool = False

    def limited(self, queries: Sequence[str], runs: Sequence[str]) -> Engine:
        """The same engine with fewer queries and runs, and what the runs are compared with."""
        asked = [v for v in self.variations[1:] if v.name in runs]
        needed = {self.variations[0].name, *(v.beside for v in asked)}
        kept = tuple(v for v in self.variations if v in asked or v.name in needed)
        return replace(
            self, variations=kept, queries=tuple(q for q in self.queries if q in queries)
        )


REFERENCE, AGAIN = Variation("reference"), Variation("again")
ENGINES = {
    "tidegate": Engine(
        "Tidegate",
        "tidegate",
        (
            REFERENCE,
            AGAIN,
            Variation("batches", cut=211),
            Variation("parallelism", parallelism=3),
            Variation("b behind", arrival="b behind"),
            Variation("b first", arrival="b first"),
            Variation("rescale", cut=600, rescale=3),
            Variation("kill", cut=211, kill=True),
        ),
        here=True,
    ),
    "spark": Engine(
        "Spark Structured Streaming",
        "pyspark",
        (
            REFERENCE,
            AGAIN,
            Variation("batches", cut=20),
            Variation("parallelism", shuffles=5),
            Variation("b behind", cut=20, arrival="b behind", beside="batches"),
            Variation("b first", cut=20, arrival="b first", beside="batches"),
            Variation("rescale", cut=20, rescale=4, kill=True, beside="batches"),
            Variation("kill", cut=20, kill=True, beside="batches"),
        ),
        here=True,
        one_size=True,
        kills_itself=True,
    ),
    "flink": Engine(
        "Flink SQL",
        "apache-flink",
        (
            REFERENCE,
            AGAIN,
            Variation("batches", cut=1),
            Variation("parallelism", parallelism=4),
            Variation("b first", arrival="b first"),
        ),
    ),
    "bytewax": Engine(
        "Bytewax",
        "bytewax",
        (
            REFERENCE,
            AGAIN,
            Variation("batches", cut=60),
            Variation("parallelism", parallelism=3),
            Variation("b behind", cut=60, arrival="b behind", beside="batches"),
            Variation("b first", cut=60, arrival="b first", beside="batches"),
            Variation("rescale", cut=60, rescale=3, kill=True, beside="batches"),
            Variation("kill", cut=60, kill=True, beside="batches"),
        ),
        queries=("sliding_avg", "first_last", "late"),
        kills_itself=True,
    ),
    "pathway": Engine(
        "Pathway",
        "pathway",
        (
            REFERENCE,
            AGAIN,
            Variation("batches", cut=60),
            Variation("parallelism", parallelism=3),
            Variation("b behind", cut=60, arrival="b behind", beside="batches"),
            Variation("b first", cut=60, arrival="b first", beside="batches"),
        ),
        one_size=True,
    ),
}
