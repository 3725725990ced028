"""Phases and seams of other packages, in the user's process. Standard library only; must not raise.

The parent has looked up which there are: to search the metadata of all installed packages is too dear for every loader
worker that starts. What cannot be imported, or does not fit, is left out and told to the parent, who puts it into the
report's notes.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from unstall.child import seams
from unstall.records.vocabulary import PHASE_NAMES, Phase, Plugins, Seam, can_name_a_phase, is_seam

PHASES, SEAMS = "unstall.phases", "unstall.seams"
"""The groups of entry points."""

Declared = dict[str, list[tuple[str, str]]]
"""Entry points by group: name and ``module:attribute`` of each."""


@cache
def declared() -> Declared:
    """The entry points of packages that are installed beside unstall; nothing of them is imported. In the parent."""
    from importlib.metadata import entry_points

    of_all = entry_points()  # one look through all packages, not one for each group
    return {
        group: sorted((entry.name, entry.value.partition("[")[0].strip()) for entry in of_all.select(group=group))
        for group in (PHASES, SEAMS)
    }


class _Misfit(ValueError):
    """Why an object is no plug-in of its group."""


Problems = list[tuple[str, str]]
"""Each plug-in that is ignored, and why."""


def load(declared: Declared) -> tuple[Plugins, Problems]:
    """Import the plug-ins, take their seams in, and say what they add, and what was wrong."""
    problems: Problems = []
    phases: dict[str, Phase] = {}
    added: list[Seam] = []
    for name, value in declared.get(PHASES, ()):
        try:
            phase = _as_phase(_resolve(value), phases)
            phases[phase.name] = phase
        except (Exception, SystemExit) as error:  # code of others: anything may go wrong in it
            problems.append(_problem(PHASES, name, value, error))
    for name, value in declared.get(SEAMS, ()):
        try:
            module = _resolve(value)
            _check_seams(module, phases)
            seams.add(module)
            added += module.SEAMS
        except (Exception, SystemExit) as error:
            problems.append(_problem(SEAMS, name, value, error))
    return Plugins(tuple(phases.values()), tuple(added)), problems


def _resolve(value: str) -> Any:
    module, _, attributes = value.partition(":")
    candidate: Any = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        candidate = getattr(candidate, attribute)
    return candidate


def _problem(group: str, name: str, value: str, error: BaseException) -> tuple[str, str]:
    why = str(error) if isinstance(error, _Misfit) else f"{type(error).__name__}: {error}"
    return f"plug-in {name!r} ({group} = {value}) is ignored", why


def _as_phase(candidate: Any, known: Mapping[str, Phase]) -> Phase:
    if not isinstance(candidate, Phase):
        raise _Misfit(f"it is a {type(candidate).__name__}, and no Phase of unstall.records.vocabulary")
    if not can_name_a_phase(candidate.name):
        raise _Misfit(f"a phase cannot be called {candidate.name!r}: small letters, digits and _ are allowed")
    if candidate.name in PHASE_NAMES or candidate.name in known:
        raise _Misfit(f"there is a phase {candidate.name!r} already")
    return candidate


def _check_seams(module: Any, phases: Mapping[str, Phase]) -> None:
    """Raises :class:`_Misfit` if an object does not hold what a file of seams does."""
    added = getattr(module, "SEAMS", None)
    if not isinstance(added, tuple) or not added or not all(isinstance(seam, Seam) for seam in added):
        raise _Misfit("its SEAMS are no tuple of seams (unstall.records.vocabulary.Seam)")
    present = {seam.event for seam in seams.all_seams()}
    for seam in added:
        if not is_seam(seam.event) or seam.event in present:
            raise _Misfit(f"a seam cannot be called {seam.event!r}: its name begins with ~ and is no other seam's")
        if seam.phase is not None and seam.phase not in PHASE_NAMES and seam.phase not in phases:
            raise _Misfit(f"there is no phase {seam.phase!r}: a plug-in of the group {PHASES} would add it")
        for file, function in seam.frames:
            re.compile(file), re.compile(function)
    targets = getattr(module, "TARGETS", None)
    if not isinstance(targets, Mapping) or not all(map(callable, targets.values())):
        raise _Misfit("its TARGETS are no mapping of modules' names to functions")
    for name in ("FINDERS", "NOTES"):
        if not isinstance(getattr(module, name, {}), Mapping):
            raise _Misfit(f"its {name} are no mapping")
