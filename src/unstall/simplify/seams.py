"""The functions behind the kinds of work that every program has: its optimizers' steps, backward, its environments.

In the user's process: standard library only. All are found alive; where the recorder has wrapped one, it is the
function inside, so that its span is recorded whatever stands in for it.
"""

from __future__ import annotations

import gc
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.child.seams import callbacks as callback_seam
from unstall.child.seams import collectives as collective_seam

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def instances(base: type) -> list[Any]:
    """The live objects of a class and its subclasses."""
    return [one for one in gc.get_objects() if issubclass(type(one), base)]


def parameters() -> Iterator[Any]:
    """Those that an optimizer of the program works on."""
    for optimizer in _optimizers():
        for group in optimizer.param_groups:
            yield from group["params"]


def optimizer() -> list[FunctionType]:
    """The step functions of the optimizers alive, beneath torch's hooks."""
    return _unique(_inner(type(one).step) for one in _optimizers())


def backward() -> list[FunctionType]:
    """What ``Tensor.backward`` and ``autograd.backward`` come down to in Python."""
    autograd = sys.modules.get("torch.autograd")
    return _unique([_inner(getattr(autograd, "_engine_run_backward", None))])


def env() -> list[FunctionType]:
    """``step`` of the environments that no other environment wraps."""
    found: list[Any] = []
    for name, attribute in (
        ("gymnasium.core", "Env"),
        ("gymnasium.vector.vector_env", "VectorEnv"),
        ("gym.core", "Env"),
    ):
        module = sys.modules.get(name)
        if module is not None:
            found += instances(getattr(module, attribute))
    inside = {id(part) for one in found for part in (one.__dict__.get("env"), *(one.__dict__.get("envs") or ()))}
    return _unique(_inner(type(one).step) for one in found if id(one) not in inside)


def fetch() -> list[FunctionType]:
    """What makes a batch of a torch loader, in the process that makes it."""
    module = sys.modules.get("torch.utils.data._utils.fetch")
    names = ("_MapDatasetFetcher", "_IterableDatasetFetcher")
    return _unique(_inner(getattr(getattr(module, name, None), "fetch", None)) for name in names)


def callbacks() -> list[FunctionType]:
    """The logging, plotting and checkpoint calls that the recorder knows, of the libraries imported."""
    found = []
    for name, calls in callback_seam._CALLS.items():
        module = sys.modules.get(name)
        for class_name, attributes in calls if module is not None else ():
            owner = getattr(module, class_name, None) if class_name else module
            found += [_inner(getattr(owner, attribute, None)) for attribute in attributes]
    return _unique(found)


def collectives() -> list[FunctionType]:
    """torch.distributed's, those that a program calls itself."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    return _unique(_inner(getattr(module, name, None)) for name in collective_seam._COLLECTIVES)


def network() -> list[FunctionType]:
    """The calls that send a request and return its response, of the clients imported."""
    found = []
    for name, owner, attribute in (
        ("requests.sessions", "Session", "send"),
        ("httpx", "Client", "send"),
        ("urllib.request", "OpenerDirector", "open"),
    ):
        module = sys.modules.get(name)
        function = getattr(getattr(module, owner, None), attribute, None)
        if isinstance(function, FunctionType):
            found.append(function)
    return found


KINDS: dict[str, Callable[[], list[FunctionType]]] = {
    "optimizer": optimizer,
    "backward": backward,
    "env": env,
    "callbacks": callbacks,
    "collectives": collectives,
    "network": network,
    "data": fetch,
}
"""By the name that a person, or a specification, gives the kind."""


def _optimizers() -> list[Any]:
    module = sys.modules.get("torch.optim.optimizer")
    return instances(module.Optimizer) if module is not None else []


def _inner(function: Any) -> Any:
    """The function inside one layer of wrapping: the recorder's or torch's hooks."""
    return getattr(function, "__wrapped__", function)


def _unique(found: Any) -> list[FunctionType]:
    return list({id(one): one for one in found if isinstance(one, FunctionType)}.values())
