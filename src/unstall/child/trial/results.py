"""Write down what functions of the program give for what they are given, the first few times.

``plan["functions"]``: path → names of functions of that module. ``results.json``, at the end of the first process:
[path, name, digest of the arguments, the result as nested lists]. What is no number, text, array, tensor or container
of such says nothing, and is left out; so is a call that has the same arguments as one before it and another result.

Whether a call has changed what it was given stands where the digest begins with ``OVERWRITTEN``. Then some calls are
made once more, each with one of its arguments in another order, which no run may give: there it begins with
``REARRANGED``.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from unstall.child.trial import rearranged

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

REARRANGED, OVERWRITTEN = "~", "!"

_MOST_CALLS = 40  # of a function, to look at
_MOST_AGAIN = 8  # of these, to make once more
_AGAIN_S = 10.0  # for all of them: one may not end
_MOST_NUMBERS = 4096  # in a value: larger ones say nothing
_DEPTH = 6
_LATER = 0x20 | 0x80 | 0x200  # code of generators and coroutines: their results come later
_GIVEN_TOO = 0x04 | 0x08  # code that takes *args or **kwargs


class Opaque(Exception):
    """A value of which nothing can be said."""


class Call(NamedTuple):
    """One that may be made once more."""

    place: tuple[str, str]
    function: Callable[..., Any]
    given: dict[str, Any]
    """A copy of its arguments, by name."""


class Results:
    """Of the functions of one process."""

    def __init__(self, functions: dict[str, list[str]], folder: str):
        self.functions = {path: frozenset(names) for path, names in functions.items()}
        self.path, self.pid = os.path.join(folder, "results.json"), os.getpid()
        self.wanted: dict[int, tuple[CodeType, str | None]] = {}
        """Of code that ran, by its identity: the path of a function that is asked for, None of any other."""
        self.calls: dict[tuple[str, str], int] = {}
        self.open: dict[int, tuple[str, str, str, dict[str, Any]]] = {}
        """By the frame: path, name, digest of the arguments and these themselves, of calls that go on."""
        self.found: dict[tuple[str, str, str], Any] = {}
        self.again: list[Call] = []

    def follow(self, frame: FrameType, event: str, argument: Any) -> None:
        """For ``sys.setprofile``."""
        if event == "call":
            path = self._wanted(frame)
            if path is not None:
                self._begin(frame, path)
        elif event == "return" and (call := self.open.pop(id(frame), None)) is not None:
            self._end(*call, argument)

    def _wanted(self, frame: FrameType) -> str | None:
        code = frame.f_code
        if id(code) not in self.wanted:
            path = os.path.abspath(code.co_filename)
            made = frame.f_globals.get(code.co_name)
            is_modules = getattr(made, "__code__", None) is code and not code.co_flags & (_LATER | _GIVEN_TOO)
            is_it = is_modules and code.co_name in self.functions.get(path, ())
            self.wanted[id(code)] = code, path if is_it else None
        return self.wanted[id(code)][1]

    def _begin(self, frame: FrameType, path: str) -> None:
        code = frame.f_code
        calls = self.calls[path, code.co_name] = self.calls.get((path, code.co_name), 0) + 1
        if calls > _MOST_CALLS:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        try:
            given = {name: frame.f_locals[name] for name in names}
            digest = digest_of(given)
        except (Opaque, KeyError):
            return
        self.open[id(frame)] = path, code.co_name, digest, given
        if calls <= _MOST_AGAIN and not code.co_posonlyargcount:
            function = frame.f_globals[code.co_name]
            self.again.append(Call((path, code.co_name), function, rearranged.copy_of(given)))

    def _end(self, path: str, name: str, digest: str, given: dict[str, Any], result: Any) -> None:
        try:
            self._note((path, name, OVERWRITTEN + digest), digest_of(given) != digest)
            self._note((path, name, digest), described(result))
        except Opaque:
            return

    def _note(self, place: tuple[str, str, str], value: Any) -> None:
        if self.found.setdefault(place, value) != value:
            self.found[place] = None

    def write(self) -> None:
        """At the end of the first process."""
        if os.getpid() == self.pid:
            sys.setprofile(None)
            signal.signal(signal.SIGALRM, _give_up)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            try:
                self._make_again()
            except (Exception, _TooLong):  # what is known by then stands
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            rows = [[*place, value] for place, value in self.found.items() if value is not None]
            with open(self.path, "w") as file:
                json.dump(rows, file)

    def _make_again(self) -> None:
        """Make the calls that are kept, each with one argument in another order. Raises _TooLong.

        What gives something else at a second time depends on more than it is given.
        """
        for place in dict.fromkeys(call.place for call in self.again):
            calls = [call for call in self.again if call.place == place]
            for name in rearranged.unordered([call.given for call in calls]):
                for call in calls:
                    given = {**call.given, name: rearranged.reverse(call.given[name])}
                    results = [_result(call.function, rearranged.copy_of(given)) for _ in range(2)]
                    if results[0] is not None and results[0] == results[1]:
                        self.found[(*place, REARRANGED + digest_of(given))] = results[0]


class _TooLong(BaseException):
    """Raised where the calls that are made again have taken all their time."""


def _give_up(*_: Any) -> None:
    raise _TooLong


def _result(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """None of a call that fails or ends the program, or of whose result nothing can be said. Raises _TooLong."""
    try:
        return described(function(**given))
    except (Exception, SystemExit):
        return None


def digest_of(given: dict[str, Any]) -> str:
    """Of arguments. Raises Opaque."""
    text = json.dumps([described(value) for value in given.values()])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Follow the calls of the main thread from now on."""
    results = Results(plan["functions"], folder)
    sys.setprofile(results.follow)
    atexit.register(results.write)
    return []


def described(value: Any, depth: int = _DEPTH) -> Any:
    """A value as nested lists, of numbers and texts; arrays and tensors are lists of their rows. Raises Opaque."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if not depth:
        raise Opaque
    if rearranged.is_tensor(value):
        torch = sys.modules["torch"]
        if value.layout is not torch.strided or value.device.type == "meta":
            raise Opaque
        return _listed(value.detach().cpu())
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _listed(value)
    if isinstance(value, (list, tuple)) and len(value) <= _MOST_NUMBERS:
        return [described(item, depth - 1) for item in value]
    if isinstance(value, (set, frozenset)) and len(value) <= _MOST_NUMBERS:
        return sorted((described(item, depth - 1) for item in value), key=repr)
    if type(value) is dict and len(value) <= _MOST_NUMBERS:
        return sorted(
            ([described(key, depth - 1), described(item, depth - 1)] for key, item in value.items()), key=repr
        )
    raise Opaque


def _listed(array: Any) -> Any:
    size = array.numel() if hasattr(array, "numel") else array.size
    if size > _MOST_NUMBERS:
        raise Opaque
    listed = array.tolist()
    try:
        json.dumps(listed)
    except (TypeError, ValueError):  # objects, dates
        raise Opaque from None
    return listed
