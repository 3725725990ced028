"""The machine, the day and the version, as every table of figures names them."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import unstall
from unstall.benchmark.environment import cpu_model, usable_cores

ROOT = Path(__file__).resolve().parent.parent
_MOST_NAMED = 10  # sittings: a longer list nobody reads


def describe() -> str:
    """For example "2 cores of AMD EPYC, Python 3.11.7, 2026-11-21"."""
    cores = "1 core" if usable_cores() == 1 else f"{usable_cores():g} cores"
    return f"{cores} of {cpu_model()}, Python {platform.python_version()}, {date.today():%Y-%m-%d}"


def version(*measured: str) -> str:
    """The last commit of what is measured (paths of the repository), marked when the files differ from it.

    The rows of earlier sittings are no part of what is measured.
    """
    paths = [*measured, ":(exclude)bench/results"]
    commit, changed = (
        subprocess.run(["git", *words, "--", *paths], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        for words in (["log", "-1", "--format=%h"], ["status", "--porcelain"])
    )
    return f"{commit}{'-dirty' * bool(changed)}" if commit else unstall.__version__


def other_sittings(rows: Mapping[str, tuple[str, str]], here: tuple[str, str]) -> str:
    """A sentence that names rows of another version or machine, or the one of all; empty where all are of this sitting.

    ``rows`` are the version and the machine of each row, by its name; ``here`` those of this sitting.
    """
    others: dict[tuple[str, str], list[str]] = {}
    for name, sitting in rows.items():
        if sitting != here:
            others.setdefault(sitting, []).append(name)
    if not others:
        return ""
    if len(others) == 1 and all(sitting != here for sitting in rows.values()):
        (version, machine), *_ = others
        return f"All rows are of one sitting: version {version}, {machine}."
    if len(others) > _MOST_NAMED:
        return f"**Rows were measured in {len(others)} sittings,** each row's own is kept with it: {_summed(others)}."
    named = [f"{_names(names)}: version {commit}, {machine}" for (commit, machine), names in sorted(others.items())]
    return f"**Rows were measured in several sittings:** {'; '.join(named)}."


def _summed(sittings: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """Rows, versions and days of each machine, in words."""
    machines: dict[str, list[tuple[str, str, int]]] = {}
    for (version, described), names in sittings.items():
        machine, _, day = described.rpartition(", ")
        machines.setdefault(machine, []).append((day, version, len(names)))
    words = []
    for machine, each in sorted(machines.items()):
        days = sorted({day for day, _, _ in each})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        words.append(f"{sum(n for *_, n in each)} rows of {len({v for _, v, _ in each})} versions on {machine}, {when}")
    return "; ".join(words)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 12 else f"{len(names)} rows"
