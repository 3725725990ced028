"""How far apart changes that are rounding and changes that are more lie from the limit between them.

Each program of tests/support/sameness_corpus.py is run as it is, perturbed, and with each of its changes. The ratio of
the largest difference to its limit must be at most 1 for those that are close, and more for the others. Networks with
max-pooling are run under SEEDS seeds: there rounding tips positions over, by chance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from machine import describe
from sameness_corpus import Program, corpus, pooling

from unstall.optimize import thresholds
from unstall.optimize.sameness import Limits, Verdict

SEEDS = 20
_HEAD = """# How close is close

<!-- Written by `make sameness-bench`; do not edit. -->

Small programs are changed in ways that only round differently, and in ways that compute something else. For each,
`unstall optimize` judges whether the first 12 steps are
[exact, close or reduced](optimize.md#how-a-change-is-judged). The ratio is that of the largest difference to its limit:
at most 1 is close.
"""


def main() -> int:
    """Judge the corpus; exit code 1 when a change is judged wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there")
    arguments = parser.parse_args()
    close: dict[str, list[tuple[float, str]]] = {}
    reduced: dict[str, list[tuple[float, str]]] = {}
    wrong = 0
    for program in corpus():
        limits = limits_of(program)
        for changes, rows, right in (
            (program.close_changes(), close, ("exact", "close")),
            (program.reduced_changes(), reduced, ("reduced",)),
        ):
            for name, changed in changes.items():
                verdict = limits.judge(program.run(**changed))
                wrong += verdict.sameness not in right
                rows.setdefault(name, []).append((verdict.ratio, program.name))
                print(row(program, name, verdict), flush=True)
    tipping = [row for programs in zip(*map(pooling, range(SEEDS))) for row in under_seeds(programs)]
    print("\n".join(tipping))
    if arguments.write:
        arguments.write.write_text(page(close, reduced, tipping))
    return int(wrong > 0)


def under_seeds(programs: Sequence[Program]) -> Iterator[str]:
    """Of one program under many seeds: how often each change is close, under one and under one of three."""
    limits = [limits_of(program) for program in programs]
    tries = 1 + len(thresholds.OTHER_SEEDS)
    for is_rounding, changes in ((True, programs[0].close_changes()), (False, programs[0].reduced_changes())):
        for name, changed in changes.items():
            verdicts = [limit.judge(program.run(**changed)) for limit, program in zip(limits, programs)]
            close = [verdict.sameness in ("exact", "close") for verdict in verdicts]
            again = [any(close[(first + more) % SEEDS] for more in range(tries)) for first in range(SEEDS)]
            what = "rounding" if is_rounding else "more"
            yield f"| {programs[0].name} | {name} | {what} | {sum(close)} of {SEEDS} | {sum(again)} of {SEEDS} |"


def limits_of(program: Program) -> Limits:
    """What rounding does to a program."""
    seeds = range(thresholds.PERTURBED_RUNS)
    return Limits(program.run(), [program.run(), *(program.run(seed=seed) for seed in seeds)])


def row(program: Program, name: str, verdict: Verdict) -> str:
    """One change of one program, for the screen."""
    return f"{program.name:30} {name:30} {verdict.ratio:10.3g} {verdict.sameness}"


def page(
    close: dict[str, list[tuple[float, str]]], reduced: dict[str, list[tuple[float, str]]], tipping: list[str]
) -> str:
    """All tables, and what lies next to the limit."""
    furthest = max(ratio for rows in close.values() for ratio, _ in rows)
    nearest = min(ratio for rows in reduced.values() for ratio, _ in rows)
    return "\n".join(
        [
            _HEAD,
            f"Measured by `make sameness-bench` on {describe()}.\n",
            f"Of what is rounding, the furthest from the original is at {furthest:.2g} of the limit; of what is more,",
            f"the nearest is at {nearest:.2g}.\n",
            "## Rounding\n",
            *table("furthest", ((name, max(rows), len(rows)) for name, rows in close.items())),
            "",
            "## More than rounding\n",
            *table("nearest", ((name, min(rows), len(rows)) for name, rows in reduced.items())),
            "",
            "## Positions that tip over\n",
            f"Networks with max-pooling, under {SEEDS} seeds: how often each change is judged close under one seed,",
            f"and under at least one of {1 + len(thresholds.OTHER_SEEDS)}.\n",
            "| program | change | which is | close under one seed | under one of them |",
            "| --- | --- | --- | ---: | ---: |",
            *tipping,
            "",
        ]
    )


def table(which: str, rows: Iterable[tuple[str, tuple[float, str], int]]) -> list[str]:
    """A Markdown table: change, ratio, the program it is of, and of how many."""
    lines = [f"| change | {which} ratio | in | programs |", "| --- | ---: | --- | ---: |"]
    return lines + [
        f"| {name} | {float(f'{ratio:.2g}'):,g} | {program} | {count} |" for name, (ratio, program), count in rows
    ]


if __name__ == "__main__":
    sys.exit(main())
