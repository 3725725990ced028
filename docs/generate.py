"""Write the tables of the documentation that are made from the program's own objects: ``python docs/generate.py``.

A table stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. With ``--check`` nothing is written, and the
exit code says whether something would be. Patterns that installed plug-ins add are in their table too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from unstall.child import seams as seam_files
from unstall.diagnose.patterns import all_patterns
from unstall.optimize.remedies import all_remedies
from unstall.optimize.remedies.by_hand import ByHand
from unstall.records.vocabulary import PHASES

DOCS = Path(__file__).parent
_BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def patterns() -> str:
    """Every pattern: a link to its page where there is one, what it is, its causes."""
    rows = []
    for name, pattern in all_patterns().items():
        page = DOCS / "patterns" / f"{name}.md"
        shown = f"[`{name}`]({name}.md)" if page.exists() else f"`{name}`"
        rows.append((shown, pattern.brief, " ".join(f"`{cause}`" for cause in pattern.causes)))
    return table(("pattern", "in one line", "causes"), rows)


def remedies() -> str:
    """Every remedy: what it does, what it needs, how its results are compared. One that only advises has no results."""
    rows = [
        (f"`{name}`", remedy.brief, remedy.needs, "advice" if name == ByHand.name else remedy.exactness)
        for name, remedy in all_remedies().items()
    ]
    return table(("remedy", "in one line", "needs", "results"), rows)


def phases() -> str:
    """Every built-in phase: what its time goes into, and what else is true of it."""
    flags = (
        " ".join(f"`{flag}`" for flag, is_set in (("model", phase.model), ("serves", phase.serves)) if is_set)
        for phase in PHASES
    )
    rows = [(f"`{phase.name}`", phase.what, flag) for phase, flag in zip(PHASES, flags)]
    return table(("phase", "what the time goes into", "flags"), rows)


def seams() -> str:
    """Every built-in seam: the name of its spans, the phase of its time, what its calls count."""
    rows = [
        (
            f"`{seam.event}`",
            f"`{seam.phase}`" if seam.phase else "the one around it",
            f"`{seam.counts.name}`" if seam.counts is not None else "",
            f"`{seam.stub}`" if seam.stub else "",
        )
        for seam in sorted(seam_files.built_in(), key=lambda seam: seam.event)
    ]
    return table(("spans", "phase", "counts", "stub"), rows)


TABLES: dict[str, Callable[[], str]] = {"patterns": patterns, "remedies": remedies, "phases": phases, "seams": seams}


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    header = tuple(header)
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def generated(text: str) -> str:
    """A page with its tables made anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block['name']]()}\n{block[3]}", text)


def main() -> int:
    """Write or check all pages; 1 when a check finds one that is not up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a page would change")
    check = parser.parse_args().check
    stale = [page for page in sorted(DOCS.rglob("*.md")) if generated(page.read_text()) != page.read_text()]
    for page in stale:
        print(f"{page.relative_to(DOCS)}: {'is not up to date: python docs/generate.py' if check else 'written'}")
        if not check:
            page.write_text(generated(page.read_text()))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
