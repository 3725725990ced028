"""All interventions there are: those in the package, and those that other packages offer by an entry point."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from importlib import metadata

from unstall.child.experiments import interventions as package
from unstall.child.experiments.interventions.base import Intervention, Specification

GROUP = "unstall.interventions"


@functools.cache
def interventions() -> dict[str, type[Intervention]]:
    """Every intervention by its name. TypeError where an entry point names something else."""
    return _load(GROUP)


def components() -> dict[str, type[Intervention]]:
    """The kinds of work that an intervention frees, by the name that a person gives them."""
    return {found.component: found for found in interventions().values() if found.component}


def of(spec: Specification) -> type[Intervention]:
    """The intervention that a specification wants. KeyError when there is none of its kind."""
    return interventions()[spec["kind"]]


def _load(group: str) -> dict[str, type[Intervention]]:
    found = []
    for file in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{file.name}")
        found += [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    built_in = [value for value in found if _is_intervention(value) and value.name]
    offered = [point.load() for point in metadata.entry_points(group=group)]
    for value in offered:
        if not (_is_intervention(value) and value.name):
            raise TypeError(f"{value!r}, offered as one of {group}, is no intervention with a name")
    return {value.name: value for value in [*built_in, *offered]}


def _is_intervention(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Intervention)
