"""Random queries again, by their seeds: `python -m tests.fuzz 17`, or `python -m tests.fuzz 0-999`.

`python -m tests.fuzz session 0-999` are those that have a construct, by its name in `CONSTRUCTS`.
Ends with 1 where answers differ, and shows the query in both dialects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from tests.fuzz import construct
from tests.fuzz.compare import check_seed


def main(arguments: list[str], check_seed: Callable[[int], bool | None] = check_seed) -> int:
    if arguments[0] in construct.CONSTRUCTS:
        return main(arguments[1:], partial(construct.check_seed, name=arguments[0]))
    failed, empty = [], 0
    for argument in arguments:
        first, _, last = argument.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            try:
                empty += check_seed(seed) is False
            except Exception as error:
                notes = "\n".join(getattr(error, "__notes__", ()))
                print(f"seed {seed}: {type(error).__name__}: {error}\n{notes}")
                failed.append(seed)
    print(f"failed: {', '.join(map(str, failed)) or 'none'}; {empty} gave no rows")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
