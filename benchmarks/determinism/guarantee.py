"""What the documentation of each engine says of this, word for word, and on which page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    quote: str
    page: str


GUARANTEES = {
    "tidegate": Guarantee(
        "The rows of a query are the same, in the same order, for any batch size, number of "
        "instances, switch and crash.",
        "proof.md",
    ),
    "spark": Guarantee(
        "the actual watermark used is only guaranteed to be at least `delayThreshold` behind the "
        "actual event time. In some cases we may still process records that arrive more than "
        "`delayThreshold` late.",
        "https://spark.apache.org/docs/latest/api/python/reference/pyspark.sql/api/"
        "pyspark.sql.DataFrame.withWatermark.html",
    ),
    "flink": Guarantee(
        "For Flink SQL, the determinism provided is limited to the computation only, because it "
        "does not store user data itself",
        "https://github.com/apache/flink/blob/master/docs/content/docs/dev/table/concepts/"
        "determinism.md",
    ),
    "bytewax": Guarantee(
        "Because snapshotting only happens periodically, it is possible that your output systems "
        "will see duplicate data around resume with some input and output connectors.",
        "https://github.com/bytewax/bytewax/blob/main/docs/guide/concepts/recovery.md",
    ),
    "pathway": Guarantee(
        "each output produced by Pathway is the final answer that would have been given if all "
        "sources were read up to the indicated cutoff times",
        "https://pathway.com/developers/user-guide/advanced/consistency",
    ),
}
