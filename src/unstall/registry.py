"""Loads the plug-ins of one kind: the modules of a package of ours, and what other packages declare as entry points.

A module of the package offers a plug-in as a constant named like the protocol: ``EXPORTER = Prometheus()`` for the
protocol ``Exporter``; where the plug-ins are classes (``type[Intervention]``), ``INTERVENTION = CachedIntervention``.
A module without that constant is a helper. Another package declares the object itself::

    [project.entry-points."unstall.exporters"]
    influx = "my_package.influx:EXPORTER"

Standard library only, so that plug-ins can be loaded in the user's process as well.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    """What every plug-in has: the name under which it is found."""

    @property
    def name(self) -> str:
        """As people type it, e.g. ``gc-freeze``."""


T = TypeVar("T", bound=Named)


def warn(message: str) -> None:
    """Say on stderr that a plug-in is ignored."""
    print(f"unstall: {message}", file=sys.stderr)


def load(group: str, package: str, protocol: type[T], on_error: Callable[[str], None] = warn) -> dict[str, T]:
    """All plug-ins of one kind by name: those of the package in the order of its modules, then those of others.

    Args:
        group: the entry-point group, e.g. ``unstall.exporters``.
        package: the package whose modules hold the built-in ones, e.g. ``unstall.exports``.
        protocol: what a plug-in has to fit: a class derived from ``typing.Protocol``, or a base class; ``type[Base]``
            where it is a class derived from the base.
        on_error: gets one line for each plug-in of another package that is ignored because it cannot be imported, does
            not fit the protocol, or takes a name that is in use.

    Raises:
        TypeError: a built-in plug-in does not fit the protocol.
    """
    plugins: dict[str, T] = {}
    kind = (get_args(protocol) or (protocol,))[0].__name__
    for module, plugin in _built_in(package, kind.upper()):
        if problem := misfit(plugin, protocol):
            raise TypeError(f"{module} is no {kind}: {problem}")
        plugins[plugin.name] = plugin
    for entry in _entry_points(group):
        source = _source(entry, group)
        try:
            plugin = entry.load()
        except Exception as error:  # code of others: anything may go wrong in it
            on_error(f"{source} is ignored: {type(error).__name__}: {error}")
            continue
        if problem := misfit(plugin, protocol) or _taken(plugin.name, plugins):
            on_error(f"{source} is ignored: {problem}")
            continue
        plugins[plugin.name] = plugin
    return plugins


def misfit(plugin: Any, protocol: type) -> str:
    """Why an object does not fit a protocol, in a few words; empty where it fits.

    It fits if it has every member, if its methods can be called as the protocol's, and if its values are of the types
    that the protocol's properties return, where these are plain classes.
    """
    if get_origin(protocol) is type:
        (base,) = get_args(protocol)
        derived = isinstance(plugin, type) and issubclass(plugin, base) and plugin is not base
        return "" if derived else f"it is no class derived from {base.__name__}"
    if isinstance(plugin, type):
        return "it is a class, not an instance of one"
    if not getattr(protocol, "_is_protocol", False):
        return "" if isinstance(plugin, protocol) else f"it is no {protocol.__name__}"
    for name, member in _members(protocol):
        if not hasattr(plugin, name):
            return f"it has no {name!r}"
        value = getattr(plugin, name)
        if isinstance(member, property):
            expected = _plain_type(member)
            if not isinstance(value, expected):
                return f"its {name!r} is no {expected.__name__}"
        elif not callable(value) or not _callable_as(value, member):
            return f"its {name!r} cannot be called as {name}{_parameters(member)}"
    return ""


def _built_in(package: str, constant: str) -> Iterator[tuple[str, Any]]:
    for info in sorted(pkgutil.iter_modules(importlib.import_module(package).__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{package}.{info.name}")
        if hasattr(module, constant):
            yield module.__name__, getattr(module, constant)


def _entry_points(group: str) -> list[EntryPoint]:
    from importlib.metadata import entry_points  # not needed before, and slow to import

    return sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def _source(entry: EntryPoint, group: str) -> str:
    package = f" of {entry.dist.name}" if entry.dist else ""
    return f"plug-in {entry.name!r}{package} ({group} = {entry.value})"


def _taken(name: str, plugins: dict[str, Any]) -> str:
    return f"there is already one named {name!r}" if name in plugins else ""


def _members(protocol: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a protocol and those above it define."""
    for base in reversed(protocol.__mro__):
        if base not in (object, Protocol) and getattr(base, "_is_protocol", False):
            for name, member in vars(base).items():
                if not name.startswith("_") and (isinstance(member, property) or callable(member)):
                    yield name, member


def _plain_type(member: property) -> type:
    """The class that a property is annotated with; ``object`` where that is no plain class or cannot be imported."""
    try:
        annotation = inspect.signature(member.fget, eval_str=True).return_annotation  # type: ignore[arg-type]
    except NameError:  # imported for type checkers only
        return object
    known = isinstance(annotation, type) and annotation is not inspect.Signature.empty
    return annotation if known and get_origin(annotation) is None else object


def _callable_as(value: Callable[..., Any], method: Callable[..., Any]) -> bool:
    """Whether a bound method takes the arguments of a protocol's method, by position and by name as there."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # written in C: not known
        return True
    positional: list[None] = []
    named: dict[str, None] = {}
    for parameter in _parameters(method).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(None)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = None
    try:
        signature.bind(*positional, **named)
    except TypeError:
        return False
    return True


def _parameters(method: Callable[..., Any]) -> inspect.Signature:
    """A protocol's method's signature without ``self``."""
    signature = inspect.signature(method)
    return signature.replace(parameters=list(signature.parameters.values())[1:])
