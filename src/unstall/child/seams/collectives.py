"""torch.distributed: the collectives that Python calls, and where it waits for one. DDP's inside backward are C++.

Which functions these are is decided by their parameters, because names change: torch 2.13 calls
``all_gather_single`` what was ``all_gather_into_tensor``.
"""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.child import finding, handlers, reading
from unstall.child.recording import native, wrap, wrap_attribute
from unstall.child.seams import process_groups
from unstall.records.vocabulary import COMM, Seam, SeamGroup, Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COLLECTIVE = Seam(
    "~comm.*",
    phase=COMM.name,
    counts=Tick.COMM,
    group=SeamGroup.COLLECTIVES,
    stub="collectives",
    frames=((r"torch[/\\]distributed[/\\](distributed_c10d|_functional_collectives|algorithms|fsdp)", r".*"),),
)
WAIT, FUNCTIONAL = "wait", "functional"
"""Members: waiting for a collective that another call began, and for one of DTensor's, whose group is not known."""
GROUP_SHIFT = 48
"""A record's argument: the number of the process group, above the bytes that its tensors hold."""
_MOST_BYTES = (1 << GROUP_SHIFT) - 1
_MOST_BEGUN = 4096

_FUNCTIONS = (FunctionType, native.SpanFunction)
_C10D, _FUNCTIONAL = "torch.distributed.distributed_c10d", "torch.distributed._functional_collectives"

_begun: dict[int, int] = {}
"""The group of each collective that was begun and not waited for, by the address of its work."""


def _parameters(function: Any) -> tuple[str, ...]:
    """The names of a function's parameters, beneath its decorators; none for what is not written in Python."""
    function = finding.inner(function)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()


def _communicates(name: str, parameters: tuple[str, ...]) -> bool:
    """Whether calling it enters a collective, or sends or receives.

    That is what may run asynchronously, and public functions on a group that neither ask about it nor make one.
    """
    if "async_op" in parameters or name.startswith("batch_"):
        return True
    return "group" in parameters and "group" not in name and not name.startswith(("_", "get_", "is_"))


def _members(module: Any) -> dict[str, tuple[str, ...]]:
    """The collectives of a module, and the parameters of each."""
    # By their type, because asking deprecated objects for their class warns.
    functions = {name: value for name, value in vars(module).items() if type(value) in _FUNCTIONS}
    own = {name: _parameters(value) for name, value in functions.items() if value.__module__ == module.__name__}
    return {name: parameters for name, parameters in own.items() if _communicates(name, parameters)}


def _install(module: Any) -> None:
    for name, parameters in _members(module).items():
        wrap_attribute(module, name, COLLECTIVE, name, after=_traffic(parameters))
    work = getattr(module, "Work", None)
    if work is not None:
        work.wait = _recorded_wait(work.wait)


def _recorded_wait(original: Any) -> Any:
    """``Work.wait``, recorded, as a function in Python: torch.compile binds no other to its work.

    Its name and first parameter also keep a work that is written in Python from calling it as its own override.
    """
    recorded = wrap(original, COLLECTIVE, WAIT, after=_waited)

    @functools.wraps(original)
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        return recorded(self, *args, **kwargs)

    return wait


def _install_functional(module: Any) -> None:
    """Where DTensor waits. The functions themselves are traced by torch.compile, which takes none but Python's own."""
    wrap_attribute(module.AsyncCollectiveTensor, "trigger_wait", COLLECTIVE, FUNCTIONAL, after=_waited_functional)


def _install_broadcast(module: Any) -> None:
    """How DDP shares buffers before each forward: C++, with the group first."""
    wrap_attribute(module, "_broadcast_coalesced", COLLECTIVE, "broadcast_coalesced", after=_traffic(("group",)))


def _traffic(parameters: tuple[str, ...]) -> Callable[..., int]:
    """What reads group and bytes off a call of a function with these parameters."""
    at = parameters.index("group") if "group" in parameters else -1

    def after(result: Any, *args: Any, **kwargs: Any) -> int:
        try:
            if at < 0:  # of operations, each with a group of its own
                group = getattr(args[0][0], "group", None) if args and args[0] else None
            else:
                group = args[at] if len(args) > at else kwargs.get("group")
            payload = (*args, *kwargs.values())
            number = process_groups.number(group, payload)
            if result is not None:
                _begin(result, number)
            return number << GROUP_SHIFT | min(_largest(payload), _MOST_BYTES)
        except Exception as error:
            if handlers.raised(error):
                raise
            return 0

    return after


def _begin(result: Any, number: int) -> None:
    """Remember the group of the work, or works, that a call began."""
    if len(_begun) > _MOST_BEGUN:
        _begun.clear()
    for work in result if type(result) is list else (result,):
        _begun[id(work)] = number


def _waited(result: Any, work: Any = None, *args: Any, **kwargs: Any) -> int:
    return _begun.pop(id(work), 0) << GROUP_SHIFT


def _waited_functional(result: Any, *args: Any, **kwargs: Any) -> int:
    try:
        return min(_largest((result,)), _MOST_BYTES)
    except Exception as error:
        if handlers.raised(error):
            raise
        return 0


def _leave_uncompiled(trace_rules: Any) -> None:
    """Keep torch.compile from compiling what the recorder calls back, but not from tracing other seams' hooks."""
    called_back = (__name__, process_groups.__name__, handlers.__name__, reading.__name__)
    trace_rules.SKIP_DIRS += [sys.modules[name].__file__ for name in called_back]
    trace_rules._recompile_re()


def _largest(values: Iterable[Any]) -> int:
    """Bytes of the largest argument: of what goes in or of what comes out, a list of tensors taken together."""
    torch = sys.modules["torch"]
    if torch._C._len_torch_function_stack():
        with reading.unobserved():
            return max((_bytes(value, torch.Tensor) for value in values), default=0)
    return max((_bytes(value, torch.Tensor) for value in values), default=0)


def _bytes(value: Any, tensor: Any) -> int:
    kind = type(value)
    if kind is list:
        return sum(_bytes(item, tensor) for item in value)
    is_tensor = kind is tensor or kind.__module__ == "torch.nn.parameter"
    return int(tensor.nbytes.__get__(value)) if is_tensor else 0


def _find() -> list[FunctionType]:
    module = sys.modules.get(_C10D)
    return finding.members(_C10D, *_members(module)) if module is not None else []


SEAMS = (COLLECTIVE,)
TARGETS = {
    _C10D: _install,
    _FUNCTIONAL: _install_functional,
    "torch.distributed": _install_broadcast,
    "torch._dynamo.trace_rules": _leave_uncompiled,
}
FINDERS = {COLLECTIVE.stub: _find}
