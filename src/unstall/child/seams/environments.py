"""gymnasium, its forebear gym, and Stable-Baselines3: ``step`` and ``reset`` of the outermost environment.

Of a vector of environments it is the vector's step that counts: those inside it are not recorded, or run elsewhere.
"""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.child import finding, reading
from unstall.child.families import visit_family
from unstall.child.recording import seam_ready, wrap
from unstall.records.vocabulary import ENV, Seam, SeamGroup, Tick

if TYPE_CHECKING:
    from unstall.child.seams import Listener

STEP = Seam(
    "~env.step",
    phase=ENV.name,
    counts=Tick.ENV,
    group=SeamGroup.ENVIRONMENTS,
    stub="env",
    frames=((r"[/\\](gymnasium|gym|stable_baselines3[/\\]common[/\\]vec_env)[/\\]", r"step|reset|step_wait"),),
)
RESET = Seam("~env.reset", phase=ENV.name, counts=Tick.OTHER, group=SeamGroup.ENVIRONMENTS)

_WRAPPERS = 20
"""Most layers of wrappers that are looked through."""
BASES = {
    "gymnasium.core": "Env",
    "gymnasium.vector.vector_env": "VectorEnv",
    "gym.core": "Env",
    "gym.vector.vector_env": "VectorEnv",
    "stable_baselines3.common.vec_env.base_vec_env": "VecEnv",
}
"""The class that environments are derived from, by module."""


def _wrap_class(cls: type) -> None:
    for attribute, seam in (("step", STEP), ("reset", RESET)):
        method = cls.__dict__.get(attribute)
        if type(method) is FunctionType:
            setattr(cls, attribute, wrap(method, seam))


def _install(base: str, module: Any) -> None:
    seam_ready()
    family = getattr(module, base)
    _wrap_class(family)  # a VecEnv's step is the base's own
    visit_family(family, _wrap_class)


def _find() -> list[FunctionType]:
    """``step`` of the environments that no other environment wraps."""
    environments: list[Any] = []
    for name, base in BASES.items():
        module = sys.modules.get(name)
        if module is not None:
            environments += finding.instances(getattr(module, base))
    inside = {id(part) for env in environments for part in _parts(reading.attributes(env))}
    return finding.functions(finding.inner(type(env).step) for env in environments if id(env) not in inside)


def _parts(held: dict[str, Any]) -> list[Any]:
    """The environments that one keeps: a wrapper's, a vector's."""
    return [held.get("env"), held.get("venv"), *(held.get("envs") or ())]


def _note(listener: Listener, count: int, env: Any, _: Any) -> None:
    if count == 1:
        listener.emit_fact("env", id=id(env), type=type(env).__qualname__, num_envs=_count(env))


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
