"""The environment answers each step with one it gave before: observation, reward and whether the episode ended."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from unstall.simplify import functions
from unstall.simplify.interventions.base import Specification
from unstall.simplify.interventions.stub import StubIntervention
from unstall.simplify.limits import ENV_ANSWERS

_BASES = (("gymnasium.core", "Env"), ("gymnasium.vector.vector_env", "VectorEnv"), ("gym.core", "Env"))


class EnvIntervention(StubIntervention):
    """Without arguments. Many answers are kept, so that episodes end about as often as they did."""

    name = component = phase = "env"
    title = "without env"
    proves = "environment-bound"
    can_be_slowed = True
    answers = ENV_ANSWERS

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """The phase is free."""
        return super(StubIntervention, cls).what_if(spec)

    @classmethod
    def targets(cls) -> list[FunctionType]:
        """``step`` of the environments that no other environment wraps."""
        alive: list[Any] = []
        for name, base in _BASES:
            module = sys.modules.get(name)
            alive += functions.instances(getattr(module, base)) if module is not None else []
        wrapped = {id(part) for env in alive for part in (env.__dict__.get("env"), *(env.__dict__.get("envs") or ()))}
        return functions.unwrapped(type(env).step for env in alive if id(env) not in wrapped)
