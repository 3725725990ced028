"""gymnasium (and its forebear gym): ``step`` and ``reset`` of the outermost environment, vectorised or not."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.child import finding, reading
from unstall.child.recording import seam_ready, wrap
from unstall.records.vocabulary import ENV, Group, Seam, Tick

if TYPE_CHECKING:
    from unstall.child.seams import Listener

STEP = Seam(
    "~env.step",
    phase=ENV.name,
    counts=Tick.ENV,
    group=Group.ENVIRONMENTS,
    stub="env",
    frames=((r"(gymnasium|gym)[/\\]", r"step|reset"),),
)
RESET = Seam("~env.reset", phase=ENV.name, counts=Tick.OTHER, group=Group.ENVIRONMENTS)

_WRAPPERS = 20
"""Most layers of wrappers that are looked through."""
BASES = {
    "gymnasium.core": "Env",
    "gymnasium.vector.vector_env": "VectorEnv",
    "gym.core": "Env",
    "gym.vector.vector_env": "VectorEnv",
}
"""By module, the class that environments are derived from."""


def _wrap_class(cls: type) -> None:
    for attribute, seam in (("step", STEP), ("reset", RESET)):
        method = cls.__dict__.get(attribute)
        if type(method) is FunctionType:
            setattr(cls, attribute, wrap(method, seam))


def visit_family(base: type, visit: Callable[[type], None]) -> None:
    """Call ``visit`` with every class derived from ``base``: those defined by now, and those to come."""
    original = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: type, **kwargs: Any) -> None:
        if original is not None:
            original.__get__(None, cls)(**kwargs)
        else:  # that of Generic, or of object in old versions of gym
            super(base, cls).__init_subclass__(**kwargs)  # type: ignore[arg-type]
        visit(cls)

    base.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[assignment]
    known, todo = {base}, [base]
    while todo:
        cls: type
        for cls in todo.pop().__subclasses__():
            if cls not in known:
                known.add(cls)
                todo.append(cls)
                visit(cls)


def _install(base: str, module: Any) -> None:
    seam_ready()
    visit_family(getattr(module, base), _wrap_class)


def _find() -> list[FunctionType]:
    """``step`` of the environments that no other environment wraps."""
    found: list[Any] = []
    for name, base in BASES.items():
        module = sys.modules.get(name)
        if module is not None:
            found += finding.instances(getattr(module, base))
    inside = {id(part) for env in found for part in (env.__dict__.get("env"), *(env.__dict__.get("envs") or ()))}
    return finding.functions(finding.inner(type(env).step) for env in found if id(env) not in inside)


def _note(listener: Listener, count: int, env: Any, _: Any) -> None:
    if count == 1:
        listener.tell("env", id=id(env), type=type(env).__qualname__, num_envs=_count(env))


def _count(env: Any) -> int:
    """How many environments are stepped at once: that is kept by the vectorised one, inside its wrappers."""
    for _ in range(_WRAPPERS):
        held = reading.attributes(env)
        if type(held.get("num_envs")) is int:
            return int(held["num_envs"])
        env = held.get("env")
    return 1


SEAMS = (STEP, RESET)
TARGETS = {module: functools.partial(_install, base) for module, base in BASES.items()}
FINDERS = {STEP.stub: _find}
NOTES = {STEP.event: _note}
