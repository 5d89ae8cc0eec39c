"""What an observed batch says of costs, between what policies see and estimates."""

from __future__ import annotations

from tidegate.elastic.observation import Observation
from tidegate.model.sample import Sample


def sample_of(seen: Observation, slots: int | None = None) -> Sample:
    """One batch of a subquery as an `Estimator` takes it; `slots` where the batch does not know.

    What was between it and the one before is part of it: batches that follow one another have it
    every time.
    """
    outputs = sum(load.outputs for load in seen.instances)
    shared_s = seen.map_s / len(seen.instances)
    cpu_s = [max(load.cpu_s - shared_s, 0.0) for load in seen.instances]
    return Sample(
        seconds=round(seen.seconds + seen.between_s, 6),
        cpu_s=round(sum(cpu_s), 6),
        busiest_s=round(max(cpu_s), 6),
        tuples=seen.taken,
        comparisons=sum(load.comparisons for load in seen.instances),
        compared=sum(load.compared for load in seen.instances),
        outputs=outputs if seen.closed is None else seen.closed,
        instances=len(seen.instances),
        slots=seen.slots if slots is None else slots,
        others_s=round(seen.others_s, 6),
        event_s=seen.event_s,
    )
