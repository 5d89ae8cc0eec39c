"""Take results of the papers' programs from one machine to another, with what they measured.

    python benchmarks/paper_take.py --pack FILE.tar.gz    there, after paper_runs.py
    python benchmarks/paper_take.py FILE.tar.gz           here: results, tables and pages

An archive has the results of the programs that ended there, their entries of `written.json`, and
the pictures that they drew. Here each result is noted with the commit, if its modules are those of
this tree; else it is stale. Sentences of other pages that quote a result are listed: write what is
said there into the page.
"""

from __future__ import annotations

import argparse
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import paper_index
from measure import HERE, RESULTS, commit
from paper_list import programs
from paper_runs import MARKERS, is_done, write_pages

ROOT = HERE.parent
INDEX = "written.json"
PICTURES = (".svg", ".png")


def files_since(marker: Path) -> Iterator[Path]:
    """Pictures that were drawn after a program was started."""
    for folder in (RESULTS, ROOT / "docs"):
        for file in sorted(folder.glob("*")):
            if file.suffix in PICTURES and file.stat().st_mtime_ns > marker.stat().st_mtime_ns:
                yield file


def pack(target: Path) -> list[str]:
    """Write an archive of what has ended; the names of its results."""
    done = [one for one in programs().values() if is_done(one, MARKERS, RESULTS)]
    names = [name for one in done for name in one.results]
    files = {RESULTS / f"{name}.json" for name in names}
    files |= {file for one in done for file in files_since(MARKERS / one.name)}
    entries = {name: paper_index.written()[name] for name in names}
    index = target.parent / INDEX
    index.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    with tarfile.open(target, "w:gz") as archive:
        archive.add(index, INDEX)
        for file in sorted(files):
            archive.add(file, file.relative_to(ROOT))
    index.unlink()
    return names


def take(source: Path) -> list[str]:
    """Unpack an archive over this tree and note its results; their names."""
    with tarfile.open(source, "r:gz") as archive:
        index = archive.extractfile(INDEX)
        assert index is not None, f"{source} has no {INDEX}"
        entries = json.loads(index.read())
        members = [one for one in archive.getmembers() if one.name != INDEX]
        archive.extractall(ROOT, members, filter="data")
    return [_noted(*one) for one in entries.items()]


def _noted(name: str, entry: dict[str, str]) -> str:
    same = entry["modules"] == paper_index.modules_digest(paper_index.measured()[name])
    paper_index.keep(name, entry["modules"], commit() if same else entry["commit"])
    return name


def show() -> None:
    """Write tables and pages anew, and say which sentences no longer quote their result."""
    write_pages()
    import figures

    for one in figures.FIGURES:
        if not one.is_there():
            print(f"docs/{one.page} must say: {one.expected()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--pack", action="store_true", help="write the file")
    asked = parser.parse_args()
    names = (pack if asked.pack else take)(asked.file)
    print(f"{len(names)} results: {', '.join(names)}")
    if not asked.pack:
        show()


if __name__ == "__main__":
    main()
