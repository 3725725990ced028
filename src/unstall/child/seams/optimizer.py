"""torch.optim: ``Optimizer.step`` through the official hooks common to all optimizers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from unstall.child import finding
from unstall.child.recording import hooks, wrap, wrap_attribute
from unstall.records.vocabulary import OPTIMIZER, OTHER, Seam, Tick

STEP = Seam(
    "~optimizer",
    phase=OPTIMIZER.name,
    counts=Tick.OPTIMIZER,
    stub="optimizer",
    frames=(
        (r"torch[/\\]optim[/\\]", r"(?!.*(zero_grad|add_param_group|state_dict|__init__)).*"),
        (r"keras[/\\]src[/\\]optimizers[/\\]|fastai[/\\]optimizer\.py$", r"apply|step|.*_update_step"),
    ),
)

MADE = Seam("~optimizer.made", counts=Tick.OTHER)
"""A new optimizer is the first sign of another training: of a student after its teacher, of a sweep's next trial."""

CLOSURE = Seam("~closure", phase=OTHER.name)
"""What an optimizer is given to call, which computes the loss: Lightning's whole training step. It is no part of the
update, and as much the program's own code as if it had been called before."""

_FUNCTIONS = (FunctionType, MethodType, functools.partial)
_handles: list[Any] = []


def _install(module: Any) -> None:
    wrap_attribute(module.Optimizer, "__init__", MADE)
    if "torch._dynamo" in sys.modules:
        _register_traceable(module)
    else:
        before, after = hooks(STEP)
        _register(module, (before, _with_recorded_closure), after)


def _on_dynamo(_: Any) -> None:
    """What is written in C cannot be traced, and torch.compile may trace a step from here on."""
    module = sys.modules.get("torch.optim.optimizer")
    if module is None or not _handles:
        return
    while _handles:
        _handles.pop().remove()
    _register_traceable(module)


def _register_traceable(module: Any) -> None:
    """Hooks that step aside while a step is traced; one before it, as each costs more than what it does."""
    before, after = hooks(STEP)
    is_compiling = sys.modules["torch"].compiler.is_compiling

    def traceable_before(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_compiling():
            return None
        before(optimizer)
        return _with_recorded_closure(optimizer, args, kwargs) if kwargs or len(args) > 1 else None

    def traceable_after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            after(optimizer)

    _register(module, (traceable_before,), traceable_after)


def _register(module: Any, before: tuple[Any, ...], after: Any) -> None:
    _handles.extend(module.register_optimizer_step_pre_hook(hook) for hook in before)
    _handles.append(module.register_optimizer_step_post_hook(after))


def _with_recorded_closure(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of a step, its closure recorded; None where it has none."""
    named = kwargs.get("closure")
    if named is not None:
        given = named if callable(named) else None
    else:  # an optimizer of the program's own may take anything there
        given = args[1] if len(args) > 1 and type(args[1]) in _FUNCTIONS else None
    if given is None:
        return None
    closure = wrap(given, CLOSURE)
    if named is not None:
        return args, {**kwargs, "closure": closure}
    return (args[0], closure, *args[2:]), kwargs


def recorded_step(original: Any) -> Any:
    """``step`` of another library's optimizer, a method, recorded as one of torch's is."""
    before, after = hooks(STEP)
    is_compiling = sys.modules["torch"].compiler.is_compiling

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        before(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            after(self)

    return step


def parameters() -> Iterator[Any]:
    """Those that an optimizer of the program works on."""
    for optimizer in _alive():
        for group in optimizer.param_groups:
            yield from group["params"]


def _alive() -> list[Any]:
    module = sys.modules.get("torch.optim.optimizer")
    return finding.instances(module.Optimizer) if module is not None else []


def _find() -> list[FunctionType]:
    """The step functions of the optimizers alive, beneath torch's hooks."""
    return finding.functions(finding.inner(type(optimizer).step) for optimizer in _alive())


SEAMS = (STEP, MADE, CLOSURE)
FINDERS = {STEP.stub: _find}
TARGETS = {"torch.optim.optimizer": _install, "torch._dynamo": _on_dynamo}
