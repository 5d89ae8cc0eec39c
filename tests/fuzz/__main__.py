"""Random queries again, by their seeds: `python -m tests.fuzz 17`, or `python -m tests.fuzz 0-999`.

Ends with 1 where answers differ, and shows the query in both dialects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.fuzz.compare import check_seed


def main(arguments: list[str], check_seed: Callable[[int], None] = check_seed) -> int:
    failed = []
    for argument in arguments:
        first, _, last = argument.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            try:
                check_seed(seed)
            except Exception as error:
                print(f"seed {seed}: {type(error).__name__}: {error}\n")
                failed.append(seed)
    print(f"failed: {', '.join(map(str, failed)) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
