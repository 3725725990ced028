"""The tables of accuracy.py: verdicts beside the truth, and how often figures hold it."""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from machine import describe, other_sittings

SECTIONS = {
    "installed": "## Installed as a package",
    "heldout": "## Held-out programs",
    "unseen": "## Programs written last",
}
"""Of the page, after the zoo's own programs as scripts: by layout, or folder of programs."""
LEGEND = (
    "- **ceiling**: how many times faster the report says the step would be if the culprit took no time, with its",
    "  interval and how sure it is of that figure. **free** is the truth: the culprit made free by hand, where that",
    "  can be done. What `unstall simplify` measures is on [another page](simplify-accuracy.md).",
    "- **expected gain**: how many times faster the report says the step would be with its remedy. **fixed** is the",
    "  truth: the rate of the program's fixed twin over that of the slow one, whatever its author did to it.",
    "- Where confidence is low, a report prints the interval alone. No figure here has high confidence: the ends of",
    "  its interval would have to be within 1.5× of each other, as in `unstall simplify`. On a GPU some have it, and",
    "  those of expected gains [are wrong](gpu-check.md).",
    "- Intervals and errors are of programs whose pattern was right and whose truth is known. A verdict is right if it",
    "  is the planted one, or another that the program's author named beside it (`also_` in truth.py).",
    "- Nothing is planted in a program called healthy, and its twin mends nothing: two runs of one program. Such a",
    "  verdict may be compute-bound, too; it counts for no gain. What page faults take of them is no matter of their",
    "  authors': `unstall optimize` gains by [keeping what is freed](optimize-figures.md) in healthy_cnn_loader.",
    "",
)


@dataclass
class Row:
    """The verdict on one program beside the truth."""

    name: str
    truth: str
    found: str
    pattern: bool
    cause: bool | None
    culprit: bool | None
    named: str
    headroom: float | None
    confidence: str
    speedup: float | None
    """True: the fixed twin's rate over the slow program's."""
    ceiling: dict[str, Any] | None = None
    """As the verdict states it: value, low, high, confidence, known_by."""
    expected_gain: dict[str, Any] | None = None
    """The same, and the remedy."""
    free: float | None = None
    """True: the culprit made free by hand, by a variant of the program or in turns of one process (free.py)."""
    version: str = ""
    machine: str = ""


def mark(right: bool | None) -> str:
    """A cell of the table."""
    return "·" if right is None else "✓" if right else "✗"


def format_row(row: Row) -> str:
    """One line for the terminal."""
    return (
        f"{mark(row.pattern)}{mark(row.cause)}{mark(row.culprit)} {row.name:26} {row.truth:28} {row.found:28} "
        f"{row.named[:34]:34} {number(row.headroom)} / {number(row.speedup)} {row.confidence}"
    )


def number(value: float | None) -> str:
    """A factor."""
    return "  – " if value is None else f"{value:.2f}×"


def share(rights: Sequence[bool | None]) -> str:
    """Of those that have a truth, how many are right."""
    known = [right for right in rights if right is not None]
    return f"{sum(known)}/{len(known)} ({sum(known) / max(len(known), 1):.0%})"


def summary(rows: Sequence[Row]) -> str:
    """The totals."""
    return (
        f"pattern {share([row.pattern for row in rows])}, cause {share([row.cause for row in rows])}, "
        f"culprit {share([row.culprit for row in rows])}"
    )


def word_for_word(rows: Sequence[Row]) -> str:
    """How often the verdict is the planted one itself, in a sentence."""
    same = sum(row.truth in (row.found, f"{row.found.partition('/')[0]}/-") for row in rows)
    return f"Word for word, pattern and cause are the planted ones in {same} of {len(rows)}."


@dataclass(frozen=True)
class Coverage:
    """How a kind of figure compares with the truth, over the programs for which both are known."""

    programs: int
    held: int
    """Truths inside their interval."""
    error: float
    """Median factor between figure and truth: 1.25 is a quarter off, either way."""
    width: float
    """Median upper over lower end."""


def coverage(pairs: Sequence[tuple[dict[str, Any], float]]) -> Coverage | None:
    """Of figures and their truths; None where there is none."""
    if not pairs:
        return None
    errors = [math.exp(abs(math.log(figure["value"] / truth))) for figure, truth in pairs]
    widths = [figure["high"] / figure["low"] for figure, _ in pairs]
    held = sum(figure["low"] <= truth <= figure["high"] for figure, truth in pairs)
    return Coverage(len(pairs), held, statistics.median(errors), statistics.median(widths))


def claims(rows: Sequence[Row]) -> list[str]:
    """Coverage and median error of ceilings and expected gains, over all and by confidence, as rows of a table."""
    lines = ["| figure | confidence | programs | truth in the interval | median error | median width |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    right = [row for row in rows if row.pattern]
    ceilings = [(row.ceiling, row.free) for row in right if row.ceiling and row.free]
    planted = [row for row in right if not row.truth.startswith("healthy")]  # in the others' twins nothing is mended
    gains = [(row.expected_gain, row.speedup) for row in planted if row.expected_gain and row.speedup]
    for name, pairs in (("ceiling", ceilings), ("expected gain", gains)):
        for level in ("high", "medium", "low", "all"):
            found = coverage([pair for pair in pairs if level in (pair[0]["confidence"], "all")])
            if found is not None:
                held = f"{found.held}/{found.programs} ({found.held / found.programs:.0%})"
                figures = f"{number(found.error)} | {number(found.width)}"
                lines.append(f"| {name} | {level} | {found.programs} | {held} | {figures} |")
    return lines if len(lines) > 2 else []


def interval(figure: dict[str, Any] | None) -> str:
    """A cell: the figure, its interval, and how sure it is."""
    if figure is None:
        return "  – "
    return f"{number(figure['value'])} ({figure['low']:.2f} to {figure['high']:.2f}, {figure['confidence']})"


def sittings(rows: Sequence[Row]) -> str:
    """Version and machine of the rows, in a sentence."""
    return other_sittings({row.name: (row.version, row.machine) for row in rows}, ("", ""))


def markdown(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """The page's first part."""
    lines = [
        "# Accuracy",
        "",
        "How often the verdict of `unstall run` is right, over programs with a planted bottleneck.",
        "",
        f"**{summary(rows)}.** {word_for_word(rows)}",
        "",
        f"`make accuracy`: each program ran for {options.seconds:g} s under `unstall run`, then its fixed twin for",
        f"{options.seconds * 0.6:g} s without. {sittings(rows)}",
        *([options.note] if options.note else []),
        "",
        *LEGEND,
        *([*claims(rows), ""] if claims(rows) else []),
        *table(rows),
    ]
    return "\n".join(lines) + "\n"


def short(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """Totals and table for a page that says the rest itself."""
    lines = [
        f"**{summary(rows)}.** {word_for_word(rows)}",
        "",
        f"Each program ran for {options.seconds:g} s. {sittings(rows)} Intervals and errors are of programs whose",
        "pattern was right and whose truth is known.",
        "",
        *([*claims(rows), ""] if claims(rows) else []),
        *table(rows),
    ]
    return "\n".join(lines)


def table(rows: Sequence[Row]) -> list[str]:
    """A row for each program."""
    lines = [
        "| program | planted | found | pattern | cause | culprit | named | ceiling | free | expected gain | fixed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.truth} | {row.found} | {mark(row.pattern)} | {mark(row.cause)} "
            f"| {mark(row.culprit)} "
            f"| `{row.named}` | {interval(row.ceiling)} | {number(row.free)} "
            f"| {interval(row.expected_gain)} | {number(row.speedup)} |"
        )
    return lines


def write(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Put the table into the page; those of the other layouts and programs stay."""
    page = options.write.read_text(encoding="utf-8") if options.write.exists() else ""
    names = {title: name for name, title in SECTIONS.items()}
    main, *others = re.split(rf"^(?={'|'.join(map(re.escape, names))})", page, flags=re.MULTILINE)
    sections = {names[text.partition("\n")[0]]: text for text in others}
    section = "installed" if options.layout == "installed" else options.zoo.name
    if section == "installed":
        sections[section] = installed_section(rows, options)
    elif section in WRITTEN_AFTER:
        sections[section] = section_of(section, rows, options)
    else:
        main = markdown(rows, options)
    parts = [main, *(sections[name] for name in SECTIONS if name in sections)]
    options.write.write_text("\n".join(part.rstrip("\n") + "\n" for part in parts), encoding="utf-8")


def installed_section(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """The same programs as a package."""
    lines = [
        SECTIONS["installed"],
        "",
        "Most trainings are a short driver script on top of an installed package. These are the same programs, with",
        "their modules in a package in site-packages; a culprit counts as right only if its package is named as well.",
        "",
        f"**{summary(rows)}.**",
        "",
        f"Measured on {describe()}; each program ran for {options.seconds:g} s.",
        "",
        "| program | planted | found | pattern | cause | culprit | named |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        marks = " | ".join(map(mark, (row.pattern, row.cause, row.culprit)))
        lines.append(f"| {row.name} | {row.truth} | {row.found} | {marks} | `{row.named}` |")
    return "\n".join(lines)


WRITTEN_AFTER = {
    "heldout": (
        "No threshold of the verdicts was set by the programs of `bench/heldout`. Four are not untouched: zip_archive",
        "(how long the windows of `optimize --quick` are), lidar_course (`compile-loop`, and that ceilings of",
        "environments were too low was seen there), healthy_autoencoder (the cause `page-faults` was made when it",
        "and one of the zoo were called unexplained) and ragged_attention (that what is left of a step of small",
        "operators runs on warmer caches, too). Here **free** is a variant of the program whose culprit takes no time.",
    ),
    "unseen": (
        "The programs of `bench/unseen` were written last, by authors who had seen neither unstall's source nor its",
        "pages. Each was run once under it, and these are the verdicts of then. Nothing was fitted to them.",
    ),
}
"""What is to be known of the programs of a folder that were written after the thresholds, as lines of the page."""


def section_of(folder: str, rows: Sequence[Row], options: argparse.Namespace) -> str:
    """Programs that were written after the thresholds."""
    lines = [
        SECTIONS[folder],
        "",
        *WRITTEN_AFTER[folder],
        "",
        f"**{summary(rows)}.** {word_for_word(rows)}",
        "",
        f"`make {folder}`: each program ran for {options.seconds:g} s. {sittings(rows)}",
        *([options.note] if options.note else []),
        "",
        *([*claims(rows), ""] if claims(rows) else []),
        *table(rows),
    ]
    return "\n".join(lines)
