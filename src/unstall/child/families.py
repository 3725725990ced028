"""Classes derived from a library's base class, the user's among them: reach each, and record its callbacks' events.

Standard library only. A framework with callbacks has a file of seams of its own, which says what its events are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import FunctionType, MethodType
from typing import Any

from unstall.child import handlers, recording
from unstall.child.recording import seam_ready, wrap
from unstall.records.vocabulary import CALLBACK, Seam, SeamGroup

IsEvent = Callable[[str], Any]
"""Whether a method of this name is called on an event."""


def event_seam(event: str) -> Seam:
    """The seam of a framework's callbacks: ``~event.<framework>.*``, a name for each class and event."""
    return Seam(event, phase=CALLBACK.name, group=SeamGroup.EVENTS)


def visit_family(base: type, visit: Callable[[type], None]) -> None:
    """Call ``visit`` with every class derived from ``base``: those defined by now, and those to come."""
    original = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: type, **kwargs: Any) -> None:
        if original is not None:
            original.__get__(None, cls)(**kwargs)
        else:  # that of Generic, or of object in old versions of gym
            super(base, cls).__init_subclass__(**kwargs)  # type: ignore[arg-type]
        try:
            visit(cls)
        except Exception as error:  # a metaclass may not let its classes be changed
            if handlers.raised(error):
                raise

    base.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[assignment]
    known, todo = {base}, [base]
    while todo:
        cls: type
        for cls in todo.pop().__subclasses__():
            if cls not in known:
                known.add(cls)
                todo.append(cls)
                visit(cls)


def record_events(base: type, seam: Seam, is_event: IsEvent, containers: Collection[str] = ()) -> None:
    """Record the methods that are called on events, in every class derived from ``base``.

    The methods of ``base`` itself do nothing. ``containers``: names of classes that pass events on to other callbacks.
    """

    def visit(cls: type) -> None:
        if cls.__name__ in containers:
            return
        for name, method in [*cls.__dict__.items()]:
            if type(method) is FunctionType and is_event(name):
                setattr(cls, name, _recorded(method, seam, cls.__qualname__, name))

    seam_ready()
    visit_family(base, visit)


def record_given(cls: type, seam: Seam, events: Callable[[str], str | None]) -> None:
    """Record the plain functions that a callback of class ``cls`` is made of.

    ``events``: of an instance's attribute, the event that the function in it is called on; None for other attributes.
    """

    def after(result: Any, callback: Any, *args: Any, **kwargs: Any) -> int:
        try:
            held = callback.__dict__
            for name, function in [*held.items()]:
                event = events(name)
                if event and type(function) in (FunctionType, MethodType):
                    held[name] = _recorded(function, seam, function.__qualname__, event)
        except Exception as error:
            if handlers.raised(error):
                raise
        return 0

    # Recorded, under a name of no seam, as that adds no frame to tracebacks.
    cls.__init__ = wrap(cls.__dict__["__init__"], Seam(seam.event.removesuffix(".*")), after=after)  # type: ignore[misc]


def _recorded(function: FunctionType | MethodType, seam: Seam, owner: str, event: str) -> Any:
    """The function with its calls recorded, and where it is written noted."""
    member = f"{owner.replace('<locals>.', '')}.{event}"
    inner: Any = function
    while type(getattr(inner, "__wrapped__", None)) is FunctionType:  # Lightning's rank_zero_only, torch.no_grad
        inner = inner.__wrapped__
    if recording.emit_fact is not None:
        code = inner.__code__
        recording.emit_fact("callback", name=seam.named(member), file=code.co_filename, line=code.co_firstlineno)
    return wrap(function, seam, member)
