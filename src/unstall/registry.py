"""Loads the plug-ins of one kind: the modules of a package of ours, and what other packages declare as entry points.

A module of the package offers a plug-in as a constant named like their base class: ``EXPORTER = Prometheus()`` for
``Exporter``; where the plug-ins are classes (``type[Intervention]``), ``INTERVENTION = CachedIntervention``. A module
without that constant is a helper. Another package declares the object itself::

    [project.entry-points."unstall.exporters"]
    influx = "my_package.influx:EXPORTER"

Standard library only, so that plug-ins can be loaded in the user's process as well.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


T = TypeVar("T")


def warn(message: str) -> None:
    """Say on stderr that a plug-in is ignored."""
    print(f"unstall: {message}", file=sys.stderr)


def load(group: str, package: str, base: type[T], on_error: Callable[[str], None] = warn) -> dict[str, T]:
    """All plug-ins of one kind by name: those of the package in the order of its modules, then those of others.

    Args:
        group: the entry-point group, e.g. ``unstall.exporters``.
        package: the package whose modules hold the built-in ones, e.g. ``unstall.exports``.
        base: the class that plug-ins are instances of; they have all attributes that it annotates, as ``name``.
            ``type[Base]`` where they are classes derived from it.
        on_error: gets one line for each plug-in of another package that is ignored because it cannot be imported, does
            not fit, or takes a name that is in use.

    Raises:
        TypeError: a built-in plug-in does not fit.
    """
    from importlib.metadata import entry_points  # not needed before, and slow to import

    plugins: dict[str, T] = {}
    kind = (get_args(base) or (base,))[0].__name__
    for info in sorted(pkgutil.iter_modules(importlib.import_module(package).__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{package}.{info.name}")
        plugin = getattr(module, kind.upper(), None)
        if plugin is not None:
            if problem := _misfit(plugin, base):
                raise TypeError(f"{module.__name__} is not a valid {kind}: {problem}")
            plugins[plugin.name] = plugin
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        offered: Any = None
        try:
            offered = entry.load()
            problem = _misfit(offered, base)
        except Exception as error:  # code of others: anything may go wrong in it
            problem = f"{type(error).__name__}: {error}"
        if not problem and offered.name in plugins:
            problem = f"there is already one named {offered.name!r}"
        if problem:
            on_error(f"{_source(entry, group)} is ignored: {problem}")
        else:
            plugins[offered.name] = offered
    return plugins


def _misfit(plugin: Any, base: type[Any]) -> str:
    """Why an object is no plug-in of this kind, in a few words; empty where it is one."""
    if get_origin(base) is type:
        (base,) = get_args(base)
        derived = isinstance(plugin, type) and issubclass(plugin, base) and plugin is not base
        return "" if derived else f"it is not a class derived from {base.__name__}"
    if isinstance(plugin, type):
        return "it is a class, not an instance of one"
    if not isinstance(plugin, base):
        return f"it is not of type {base.__name__}"
    if missing := [name for name in inspect.get_annotations(base) if not hasattr(plugin, name)]:
        return f"it has no {missing[0]!r}"
    return "" if isinstance(getattr(plugin, "name", None), str) else "its 'name' is not a string"


def _source(entry: EntryPoint, group: str) -> str:
    package = f" of {entry.dist.name}" if entry.dist else ""
    return f"plug-in {entry.name!r}{package} ({group} = {entry.value})"
