"""gymnasium (and its forebear gym): ``step`` and ``reset`` of the outermost environment, vectorised or not."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import ENV, OTHER, seam_ready, wrap

_GROUP = 1


def _wrap_class(cls: type) -> None:
    for attribute, name, kind in (("step", "~env.step", ENV), ("reset", "~env.reset", OTHER)):
        method = cls.__dict__.get(attribute)
        if type(method).__name__ == "function":
            setattr(cls, attribute, wrap(method, name, kind=kind, group=_GROUP))


def _hook_family(base: type) -> None:
    """Wrap every class of the family, those defined by now and those to come."""
    original = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: type, **kwargs: Any) -> None:
        if original is not None:
            original.__get__(None, cls)(**kwargs)
        else:  # that of Generic, or of object in old versions of gym
            super(base, cls).__init_subclass__(**kwargs)  # type: ignore[arg-type]
        _wrap_class(cls)

    base.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[assignment]
    known, todo = {base}, [base]
    while todo:
        cls: type
        for cls in todo.pop().__subclasses__():
            if cls not in known:
                known.add(cls)
                todo.append(cls)
                _wrap_class(cls)


def _install_env(module: Any) -> None:
    seam_ready()
    _hook_family(module.Env)


def _install_vector(module: Any) -> None:
    seam_ready()
    _hook_family(module.VectorEnv)


TARGETS = {
    "gymnasium.core": _install_env,
    "gymnasium.vector.vector_env": _install_vector,
    "gym.core": _install_env,
    "gym.vector.vector_env": _install_vector,
}
