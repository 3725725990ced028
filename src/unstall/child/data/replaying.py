"""A stage of the data pipeline, and its calls made again: the same function on fresh copies of the same arguments."""

from __future__ import annotations

import copy
import inspect
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, FrameType, FunctionType, GeneratorType
from typing import Any

from unstall.child.data.clock import Cost, timed
from unstall.child.user_files import is_program_file

_SCALARS = (str, bytes, int, float, complex, bool, type(None), type, range)
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass
class StageCall:
    """One call of a stage, with what is needed to make it again."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class Stage:
    """A function as the samples go through it."""

    name: str
    file: str
    line: int
    depth: int
    order: int
    element: bool = False
    """A member of a list of transforms."""
    calls: int = 0
    traced_s: float = 0.0
    """Seconds on a core, with the hook in place: too long for a function that calls many others."""
    reads_s: float = 0.0
    """Wall time in calls that wait for a disk, a network or the clock."""
    why_not: str = ""
    """Why it cannot be called again on its own."""
    calls_kept: list[StageCall] = field(default_factory=list)
    bytes_kept: int = 0


class Unrepeatable(Exception):
    """The call cannot be made again on its own; the message says why."""


class Fresh:
    """An argument that is made anew for every call; ``size``: about how many bytes are kept for it."""

    def __init__(self, make: Callable[[], Any], size: int = 0):
        self.make = make
        self.size = size


def call_of(frame: FrameType, owner: Any) -> StageCall:
    """The call that a frame has just begun. Raises :class:`Unrepeatable` for a generator or an argument used up."""
    code = frame.f_code
    if code.co_flags & _GENERATOR:
        raise Unrepeatable("a generator: timed where it is used")
    values = frame.f_locals
    count = code.co_argcount
    positional = [values[name] for name in code.co_varnames[:count]]
    keywords = {name: values[name] for name in code.co_varnames[count : count + code.co_kwonlyargcount]}
    following = count + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        positional += values[code.co_varnames[following]]
        following += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords |= values[code.co_varnames[following]]
    if owner is not None:
        arguments = positional if getattr(owner, "__code__", None) is code else positional[1:]
        return StageCall(owner, tuple(keep(value) for value in arguments), {k: keep(v) for k, v in keywords.items()})
    closure = tuple(CellType(values[name]) if name in values else CellType() for name in code.co_freevars)
    function = FunctionType(code, frame.f_globals, code.co_name, None, closure)
    # What a method of the user's belongs to stays as it is: a dataset may be large, and is not the method's input.
    stays = bool(count) and code.co_varnames[0] in ("self", "cls") and is_program_file(code.co_filename)
    args = [*positional[:1], *map(keep, positional[1:])] if stays else [*map(keep, positional)]
    return StageCall(function, tuple(args), {name: keep(value) for name, value in keywords.items()})


def keep(value: Any) -> Any:
    """A copy of an argument, or a :class:`Fresh` that makes one for each call. Raises :class:`Unrepeatable`."""
    if isinstance(value, _SCALARS) or callable(value):
        return value
    if isinstance(value, GeneratorType) or (hasattr(value, "__next__") and not hasattr(value, "fp")):
        raise Unrepeatable("it uses up an iterator that it is given")
    if type(value) is tuple:
        items = [keep(item) for item in value]
        if not any(isinstance(item, Fresh) for item in items):
            return value
        return Fresh(lambda: tuple(fresh(item) for item in items), bytes_of(items))
    if hasattr(value, "fp") and hasattr(value, "filename") and hasattr(value, "load"):
        return _keep_image(value)
    if hasattr(value, "read") and hasattr(value, "seek"):
        raise Unrepeatable("it reads from an open file that it is given")
    if type(value).__module__.startswith("torch") and hasattr(value, "clone"):
        copied = value.detach().clone()
        return Fresh(lambda: copied.clone(), copied.numel() * copied.element_size())
    try:
        copied = copy.deepcopy(value)
    except Exception:
        return value  # a lock, a connection: then it is an instrument, no input
    return Fresh(lambda: copy.deepcopy(copied), int(getattr(copied, "nbytes", 0)) or sys.getsizeof(copied))


def _keep_image(image: Any) -> Any:
    """An image of Pillow's. One that was opened and not read yet is opened anew, so that its user decodes it."""
    from io import BytesIO

    from PIL import Image

    if image.fp is None or getattr(image, "_im", None) is not None:
        copied = image.copy()
        return Fresh(copied.copy, copied.width * copied.height * 4)
    if image.filename:
        name = image.filename
        return Fresh(lambda: Image.open(name))
    position = image.fp.tell()
    image.fp.seek(0)
    data = image.fp.read()
    image.fp.seek(position)
    return Fresh(lambda: Image.open(BytesIO(data)), len(data))


def fresh(value: Any) -> Any:
    """The argument for one call."""
    return value.make() if isinstance(value, Fresh) else value


def bytes_of(values: Any) -> int:
    """Kept for these arguments."""
    arguments = values.values() if isinstance(values, dict) else values
    return sum(value.size for value in arguments if isinstance(value, Fresh))


def replay(stage: Stage, *, seconds: float) -> Cost | None:
    """What one call of the stage takes by itself; None where it cannot be called again, ``why_not`` says why."""
    cost = Cost()
    ends = time.perf_counter() + 3 * seconds
    try:
        while stage.calls_kept and cost.wall_s < seconds and time.perf_counter() < ends:
            for call in stage.calls_kept:
                args = [fresh(value) for value in call.args]
                kwargs = {name: fresh(value) for name, value in call.kwargs.items()}
                timed(cost, 1, call.function, *args, **kwargs)
    except Exception as error:
        stage.why_not = f"called on its own it raised {type(error).__name__}"
        return None
    return cost if cost.count else None
