"""Algorithm 10 of the dissertation (ShedPart) as it is printed, worker by worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def shed_part(
    load: Sequence[int], groups: Mapping[int, tuple[int, int, int]], cold: int
) -> dict[int, int]:
    """The sample sizes of the groups that are trimmed.

    `load` is L; `groups` has of each group its worker (R), its tuples, and its SAMPLE_SIZE. Groups
    with fewer tuples than `cold` are not looked at. As printed the loop ends "until not conclude",
    which would be after the first worker; the text says that it ends when the fullest worker cannot
    be trimmed further. Of workers that are equally full, one that was looked at already comes
    first.
    """
    loads = list(load)
    black_list: set[int] = set()
    trim_info: dict[int, int] = {}
    by_size = sorted(groups, key=lambda g: -groups[g][1])
    explored: set[int] = set()
    while True:
        conclude = True
        fullest = max(range(len(loads)), key=lambda w: (loads[w], w in explored))
        explored.add(fullest)
        mine = [g for g in by_size if groups[g][0] == fullest and groups[g][1] >= cold]
        if not mine:
            return trim_info
        for g in mine:
            if g in trim_info or g in black_list:
                continue
            _, tuples, size = groups[g]
            if size < tuples:
                conclude = False
                loads[fullest] += size - tuples
                trim_info[g] = size
            else:
                black_list.add(g)
        if conclude:
            return trim_info
