"""jax: calls of what ``jax.jit`` returned, the waits for what these compute, and each time one is compiled.

JAX has no step of its own: the jitted function that takes the most time counts them. Keras, Flax and Equinox reach
the same functions.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from unstall.child import recording
from unstall.child.recording import native, seam_ready, wrap, wrap_attribute
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam, SeamGroup, Tick

CALL = Seam("~jit.*", phase=vocabulary.DISPATCH.name, counts=Tick.FORWARD, group=SeamGroup.MODULES)
WAIT = Seam("~device.wait", phase=vocabulary.DEVICE.name, counts=Tick.OTHER)
TRACE = Seam("~trace.*")
COMPILE = Seam("~compile.*")
"""Marks where tracing or lowering ended, or compiling; their argument is for how many nanoseconds that went on."""

_COMPILING = "/jax/core/compile/"
_TRANSFORMED = re.compile(r"^\w+\((.*)\)$")


def _install(module: Any) -> None:
    seam_ready()
    module.monitoring.register_event_duration_secs_listener(_on_duration)
    wrap_attribute(module, "block_until_ready", WAIT)
    if recording.NATIVE:  # its stand-in returns plain functions, which have not what jitted ones have: lower(), trace()
        module.jit = _recorded_jit(module.jit)


def _recorded_jit(original: Any) -> Any:
    @functools.wraps(original)
    def jit(*args: Any, **kwargs: Any) -> Any:
        jitted = original(*args, **kwargs)
        if args or "fun" in kwargs:
            return _recorded(jitted)
        return lambda fun: _recorded(jitted(fun))

    return jit


def _recorded(jitted: Any) -> Any:
    name = str(getattr(jitted, "__name__", "function"))
    number = native.intern(CALL.named(name))
    return wrap(jitted, CALL, name, after=lambda *_, **__: number)


def _install_array(module: Any) -> None:
    """Where the host waits: reading a value (``float``, ``item``, ``numpy.asarray``) ends in ``_value``."""
    array = module.ArrayImpl
    wrap_attribute(array, "block_until_ready", WAIT)
    array._value = property(wrap(array._value.fget, WAIT))


def _on_duration(event: str, duration: float, **facts: Any) -> None:
    if event.startswith(_COMPILING) and event.endswith("_duration"):
        name = str(facts.get("fun_name", "function"))
        transformed = _TRANSFORMED.match(name)
        seam = COMPILE if "backend" in event else TRACE
        number = native.intern(seam.named(transformed[1] if transformed else name))
        native.begin(number)
        native.end(number, int(duration * 1e9))


SEAMS = (CALL, WAIT, TRACE, COMPILE)
TARGETS = {"jax": _install, "jax._src.array": _install_array}
