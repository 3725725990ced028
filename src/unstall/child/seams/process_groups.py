"""torch.distributed: joining the other ranks, and the groups in which ranks communicate.

Every launcher's programs join here, so rank and world size are known whatever started them.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from unstall.child import handlers, launchers, reading, recording
from unstall.child.recording import wrap_attribute
from unstall.records.vocabulary import COMM, Seam, SeamGroup

FORMING = Seam("~group.*", phase=COMM.name, group=SeamGroup.COLLECTIVES)
"""All ranks make a group together, and wait for each other meanwhile."""

_C10D = "torch.distributed.distributed_c10d"
_MAKERS = ("init_process_group", "new_group", "split_group", "shrink_group")

_numbers: dict[Any, int] = {}
"""Numbers of groups by what a call gave as its group; see :func:`_key`."""
_by_name: dict[str, int] = {}


def _install(module: Any) -> None:
    for name in _MAKERS:
        after = _joined if name == "init_process_group" else _formed
        wrap_attribute(module, name, FORMING, name, after=after)


def _joined(result: Any, *args: Any, **kwargs: Any) -> int:
    """The default group was made: this process is a rank."""
    try:
        _by_name.clear()
        c10d = sys.modules[_C10D]
        if recording.emit_fact is not None:
            rank, world_size = c10d.get_rank(), c10d.get_world_size()
            host, pid = os.uname().nodename, os.getpid()
            recording.emit_fact("rank", rank=rank, world_size=world_size, host=host, pid=pid, **launchers.job())
    except Exception as error:
        if handlers.raised(error):
            raise
    return _formed(result)


def _formed(result: Any, *args: Any, **kwargs: Any) -> int:
    """Another group may lie where one lay before."""
    _numbers.clear()
    return 0


def number(group: Any, payload: Any = ()) -> int:
    """The number of a group as calls name it, None for the default one; 0 where it is not known.

    A group that was not met before is described in a line of facts. ``payload``: the call's arguments, by whose first
    tensor the device is known.
    """
    key = _key(group)
    known = _numbers.get(key)
    if known is None:
        known = _numbers[key] = _introduce(_resolved(group), payload)
    return known


def _key(group: Any) -> Any:
    """Equal for equal groups: a mesh and a dimension of it, ranks and names come as objects made for the call."""
    if type(group) is tuple:
        return tuple(id(part) if not isinstance(part, (int, str)) else part for part in group)
    if type(group) is list:
        return str(group)
    return group if isinstance(group, str) else id(group)


def _resolved(group: Any) -> Any:
    """The process group; None where there is none."""
    c10d: Any = sys.modules[_C10D]
    if group is None:
        return c10d._get_default_group()
    if isinstance(group, c10d.ProcessGroup):
        return group
    functional: Any = sys.modules["torch.distributed._functional_collectives"]
    return c10d._resolve_process_group(functional._resolve_group_name(group, ""))


def _introduce(group: Any, payload: Any) -> int:
    c10d: Any = sys.modules[_C10D]
    name = str(group.group_name)
    if name not in _by_name:
        _by_name[name] = len(_by_name) + 1
        if recording.emit_fact is not None:
            recording.emit_fact(
                "group",
                number=_by_name[name],
                name=name,
                description=str(getattr(group, "group_desc", "")),
                ranks=[int(rank) for rank in c10d.get_process_group_ranks(group)],
                device=_device(payload),
            )
    return _by_name[name]


def _device(payload: Any) -> str:
    """Of the first tensor among these, as torch writes it; empty without one."""
    tensor: Any = sys.modules["torch"].Tensor
    with reading.unobserved():
        for value in payload:
            first = value[0] if type(value) is list and value else value
            if type(first) is tensor:
                return str(tensor.device.__get__(first))
    return ""


SEAMS = (FORMING,)
TARGETS = {_C10D: _install}
