"""All interventions: those of unstall, and those that other packages offer by an entry point."""

from __future__ import annotations

import functools

from unstall.child.experiments.interventions.base import Intervention, Specification
from unstall.registry import load

GROUP = "unstall.interventions"
_PACKAGE = "unstall.child.experiments.interventions"


@functools.cache
def interventions() -> dict[str, type[Intervention]]:
    """Every intervention by its name."""
    return load(GROUP, _PACKAGE, type[Intervention])  # type: ignore[arg-type]


def components() -> dict[str, type[Intervention]]:
    """The kinds of work that an intervention frees, by the name that a person gives them."""
    return {kind.component: kind for kind in interventions().values() if kind.component}


def of(spec: Specification) -> type[Intervention]:
    """The intervention that a specification wants. KeyError when there is none of its kind."""
    return interventions()[spec["kind"]]
