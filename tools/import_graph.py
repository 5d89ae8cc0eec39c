"""Draws who imports whom between the rooms of the package, into docs/rooms.svg and docs/rooms.md.

.venv/bin/python tools/import_graph.py            # draw
.venv/bin/python tools/import_graph.py --check    # fail where the pictures are not up to date
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tidegate"
PICTURE, PAGE = ROOT / "docs" / "rooms.svg", ROOT / "docs" / "rooms.md"
BASE = "what travels"
"""The modules beside the rooms, which all of them may import, as one."""

WIDTH, HEIGHT, GAP, TOP = 118, 34, 22, 62
MOST_SHOWN = 12
HUES = ("#0b7285", "#5f3dc4", "#a61e4d", "#2b8a3e", "#e67700", "#364fc7", "#862e9c", "#087f5b")


def layers() -> list[list[str]]:
    """The rooms by layer, top down, as the contract in pyproject.toml has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rows = contracts["contracts"][0]["layers"]
    found = [[n.strip(" ()") for n in row.replace("|", ":").split(":")] for row in rows]
    rooms = {p.name for p in (ROOT / "src" / PACKAGE).iterdir() if (p / "__init__.py").exists()}
    kept = [[n for n in row if n in rooms] for row in found]
    return [row for row in kept if row] + [[BASE]]


def edges(graph: grimp.ImportGraph, rooms: set[str]) -> Counter[tuple[str, str]]:
    """How many imports of modules lead from one room to another."""
    found: Counter[tuple[str, str]] = Counter()
    for module in sorted(graph.modules):
        for imported in graph.find_modules_directly_imported_by(module):
            pair = room_of(module, rooms), room_of(imported, rooms)
            if None not in pair and pair[0] != pair[1]:
                found[pair[0] or "", pair[1] or ""] += 1
    return found


def room_of(module: str, rooms: set[str]) -> str | None:
    parts = module.split(".")
    if parts[0] != PACKAGE or len(parts) < 2:
        return None
    return parts[1] if parts[1] in rooms else BASE


def knowing(graph: grimp.ImportGraph) -> list[tuple[str, int]]:
    """The modules that import most others of the package."""
    counts = {
        module: sum(
            1
            for other in graph.find_modules_directly_imported_by(module)
            if other.startswith(f"{PACKAGE}.")
        )
        for module in graph.modules
    }
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_SHOWN]


def drawn(rows: list[list[str]], found: Counter[tuple[str, str]]) -> str:
    """The rooms as boxes, layer below layer; lines as thick as there are imports."""
    wide = max(len(row) for row in rows) * (WIDTH + GAP) + GAP
    tall = len(rows) * (HEIGHT + TOP)
    place: dict[str, tuple[float, float]] = {}
    for level, row in enumerate(rows):
        left = (wide - len(row) * (WIDTH + GAP) + GAP) / 2
        for i, room in enumerate(row):
            place[room] = left + i * (WIDTH + GAP), 12 + level * (HEIGHT + TOP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" role="img" '
        'font-family="sans-serif" font-size="13">',
        "<title>Which rooms import which, top down</title>",
        f'<rect width="{wide}" height="{tall}" fill="white"/>',
    ]
    order = [room for row in rows for room in row]
    for (upper, lower), count in sorted(found.items()):
        if upper not in place or lower not in place:
            continue
        x1, y1 = place[upper][0] + WIDTH / 2, place[upper][1] + HEIGHT
        x2, y2 = place[lower][0] + WIDTH / 2, place[lower][1]
        middle = (y1 + y2) / 2
        hue = HUES[order.index(upper) % len(HUES)]
        lines.append(
            f'<path d="M{x1:.0f} {y1} C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2}" '
            f'fill="none" stroke="{hue}" stroke-opacity="0.45" '
            f'stroke-width="{1 + min(count, 60) / 12:.1f}">'
            f"<title>{upper} imports {lower}: {count} times</title></path>"
        )
    for room, (x, y) in place.items():
        lines.append(
            f'<rect x="{x:.0f}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f1f3f5" '
            'stroke="#495057"/>'
            f'<text x="{x + WIDTH / 2:.0f}" y="{y + HEIGHT / 2 + 5:.0f}" '
            f'text-anchor="middle">{room}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def page(
    rows: list[list[str]], found: Counter[tuple[str, str]], most: list[tuple[str, int]]
) -> str:
    """The picture with its numbers."""
    lines = [
        "# Rooms",
        "",
        "<!-- Made by tools/import_graph.py; `make rooms` makes it anew. -->",
        "",
        "Which rooms import which, top down; a thicker line is more imports. The layers are those",
        "that `make layers` checks; [architecture](architecture.md) says what each room is for.",
        "",
        "![Which rooms import which](rooms.svg)",
        "",
        "| room | imports of other rooms | imported by |",
        "|---|---|---|",
    ]
    for room in (room for row in rows for room in row):
        own = {lower: n for (upper, lower), n in sorted(found.items()) if upper == room}
        others = sum(n for (_, lower), n in found.items() if lower == room)
        names = ", ".join(f"{lower} {n}" for lower, n in own.items()) or "none"
        lines.append(f"| {room} | {names} | {others} |")
    lines += ["", "The modules that import most others:", "", "| module | imports |", "|---|---|"]
    lines += [f"| `{module.removeprefix(PACKAGE + '.')}` | {count} |" for module, count in most]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    rows = layers()
    found = edges(graph, {room for row in rows for room in row})
    made = {PICTURE: drawn(rows, found), PAGE: page(rows, found, knowing(graph))}
    if not check:
        for path, text in made.items():
            path.write_text(text, encoding="utf-8")
        return 0
    old = [p.name for p, text in made.items() if not p.exists() or p.read_text() != text]
    if old:
        print(f"docs: {', '.join(old)} must be as the code is; run `make rooms`.", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
