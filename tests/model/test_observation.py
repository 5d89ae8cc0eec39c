"""What a batch says of costs: what instances did, without what map tasks did for them."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.model.observation import InstanceLoad, Observation
from tidegate.route.mapping import even


def test_the_time_of_map_tasks_is_no_work_of_instances() -> None:
    mapping = even(4, 2)
    loads = (
        InstanceLoad(0.3, 10, comparisons=100, outputs=4, compared=30),
        InstanceLoad(0.5, 12, comparisons=120, outputs=5, compared=20),
    )
    seen = Observation(
        subquery="join",
        batch=3,
        seconds=1.0,
        period_s=1.2,
        mapping=mapping,
        instances=loads,
        buckets=np.zeros(4),
        taken=40,
        event_s=2.5,
        map_s=0.2,
        others_s=0.1,
    )
    sample = seen.sample(slots=2)
    assert sample.cpu_s == pytest.approx(0.6)
    assert sample.busiest_s == pytest.approx(0.4)
    assert (sample.tuples, sample.comparisons, sample.compared, sample.outputs) == (40, 220, 50, 9)
    assert (sample.instances, sample.slots, sample.event_s) == (2, 2, 2.5)
    assert sample.overhead_s == pytest.approx(0.5)
