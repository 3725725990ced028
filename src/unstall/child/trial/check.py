"""Prove that what a patch keeps or remembers may be kept: while the changed program's results are compared.

A sample that the patch's cache is asked for is made once more, under another seed, and must be equal to the byte to
what the cache gives. A function that remembers its results (``plan["memoized"]``: ``file:function``) may be asked only
plain values, and what it remembers must still be what it would compute. A file that the patch keeps as it was parsed is
parsed again each time, and must be the same as what is kept. A model that the patch calls for many items at once is
called for each alone as well, at its turn, with what the item then gives; the outputs must agree but for rounding.
A batch that the patch indexes at once is made of its samples as well, and must be equal to the byte. What a part of a
model gives for a sample must be the same each time, and in whatever batch, but for rounding.
``mismatch.txt`` says when that does not hold.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any

from unstall.child.trial import batched_calls, indexed_batches, kept_features, perturb, seed
from unstall.child.trial import clock as clocks
from unstall.child.trial.observe import facts

if TYPE_CHECKING:
    from collections.abc import Callable

    Report = Callable[[str], None]
    """Gets what is wrong, in one line."""


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Watches over the classes that patches bring along, and over ``functools.lru_cache`` for the functions named."""

    def report(line: str) -> None:
        with open(os.path.join(folder, "mismatch.txt"), "w") as file:
            file.write(line)

    size = float(plan.get("size") or 0.0)
    watch_classes(
        {
            "_SampleCache": lambda cls: _check_cache(cls, report),
            "_WatchedSamples": lambda cls: _check_watched(cls, report),
            "_ReadOnce": lambda cls: _check_read_once(cls, report),
            "_Remembered": lambda cls: _check_remembered(cls, report),
            "_IndexedBatch": lambda cls: indexed_batches.check_class(cls, report),
            "_Batches": lambda cls: batched_calls.check_class(cls, report, size),
            "_KeptFeatures": lambda cls: kept_features.check_class(cls, report, size),
        }
    )
    if plan.get("memoized"):
        functools.lru_cache = _checking(functools.lru_cache, set(plan["memoized"]), report)
    return [("torch.nn.modules.module", lambda module: perturb.before_calls(module, lambda: perturb.current))]


def watch_classes(checks: dict[str, Callable[[Any], None]]) -> None:
    """From now on, call these with each class of their name, in whatever module it is defined."""
    original = builtins.__build_class__

    def build(body: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
        cls = original(body, name, *bases, **keywords)
        if name in checks:
            checks[name](cls)
        return cls

    builtins.__build_class__ = build


class _Pickler(pickle.Pickler):
    """Writes of a tensor what is in it: torch's own way writes the address of its memory as well."""

    def persistent_id(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        return facts(value) if torch is not None and isinstance(value, torch.Tensor) else None


def content(value: Any) -> bytes:
    """All that is in a value, as bytes: the same for equal ones."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def _check_cache(cache: Any, report: Report) -> None:
    get = cache.get

    def checked(self: Any, load: Any, index: Any) -> Any:
        with seed.Generators():
            seed.seed_all("check")
            made = content(load(index))
        sample = get(self, load, index)
        if content(sample) != made:
            report(f"sample {index!r} is not the same every time it is made")
        return sample

    cache.get = checked


def _check_watched(cls: Any, report: Report) -> None:
    get = cls.get

    def checked(dataset: Any, make: Any, index: Any) -> Any:
        contents, held = set(), []
        with seed.Generators():
            for number in (1, 2):
                seed.seed_all("check", number)
                for _ in range(2):  # the second time, as it is kept
                    contents.add(content(get(dataset, make, index)))
                contents.add(content(make(index)))
                held.append(cls.sample.__globals__["_Held"](dataset))
        if len(contents) > 1:
            report(f"sample {index!r} is not the same every time it is made")
        elif not _hold_alike(*held):
            report(f"making sample {index!r} changes what the dataset holds, each time otherwise")
        return get(dataset, make, index)

    cls.get = checked


def _hold_alike(one: Any, two: Any) -> bool:
    """Whether a dataset holds the same, or what was made anew has the same in it: it is no counter and no sum."""
    if [size for _, size in one.sizes + one.versions] != [size for _, size in two.sizes + two.versions]:
        return False
    parts = [[parts for _, _, parts in held.parts] for held in (one, two)]
    if list(map(len, parts[0])) != list(map(len, parts[1])):
        return False
    pairs = [pair for first, second in zip(*parts) for pair in zip(first, second)]
    try:
        return all(a is b or content(a) == content(b) for a, b in pairs)
    except Exception:  # whatever cannot be written cannot be compared either
        return False


def _check_read_once(cls: Any, report: Report) -> None:
    original = cls._kept
    shared: dict[str, tuple[Any, bytes]] = {}

    def verify() -> None:
        for path, (result, before) in shared.items():
            if content(result) != before:
                report(f"what {path} holds is changed by the program")

    def checked(reader: Any, read: Any, path: Any, args: Any, kwargs: Any) -> Any:
        if not shared and clocks.current is not None:
            clocks.current.on_end.append(verify)
        result, now = original(reader, read, path, args, kwargs), content(read())
        if content(result) != now:
            report(f"what {path} holds is changed by the program, or is not the same every time it is read")
        shared[str(path)] = result, now
        return result

    cls._kept = checked


def _check_remembered(cls: Any, report: Report) -> None:
    init = cls.__init__

    def __init__(self: Any, function: Any, lists: tuple[int, ...] = ()) -> None:
        init(self, function, lists)
        self.watched = _watched(function, report, lists=lists, looks_first=True)

    cls.__init__ = __init__
    cls.__call__ = lambda self, *given, **named: self.watched(*given, **named)


def _checking(original: Any, memoized: set[str], report: Report) -> Any:
    """``lru_cache`` that watches over the functions named."""

    def lru_cache(*args: Any, **kwargs: Any) -> Any:
        decorate = original(*args, **kwargs)

        def decorator(function: Any) -> Any:
            code = getattr(function, "__code__", None)
            if code is None:
                return decorate(function)
            if f"{code.co_filename}:{code.co_name}" in memoized or any(
                argument.endswith(f"{os.sep}{code.co_filename}:{code.co_name}") for argument in memoized
            ):
                return _watched(function, report)
            return decorate(function)

        return decorate if args and callable(args[0]) else decorator

    return lru_cache


def _watched(function: Any, report: Report, *, lists: tuple[int, ...] = (), looks_first: bool = False) -> Any:
    """A function that remembers its results, and sees whether that is right.

    ``lists``: places of arguments that may be lists, known by which one it is. ``looks_first``: what cannot be looked
    up is computed each time.
    """
    results: dict[Any, tuple[Any, bytes]] = {}
    first_contents: dict[int, tuple[Any, bytes]] = {}
    method = "." in function.__qualname__.rpartition("<locals>.")[2]

    def differs(key: Any) -> bool:
        result, before = results[key]
        return content(result) != before

    def verify() -> None:
        if any(map(differs, results)):
            report(f"a result of {function.__name__} is changed later")

    @functools.wraps(function)
    def remembered(*args: Any, **kwargs: Any) -> Any:
        given_lists = [args[index] for index in lists if index < len(args) and isinstance(args[index], list)]
        arguments = [*(args[1:] if method else args), *kwargs.values()]
        if looks_first and not all(
            map(_has_value, [one for one in arguments if not any(one is known for known in given_lists)])
        ):
            return function(*args, **kwargs)
        if not all(_is_plain(argument) or any(argument is known for known in given_lists) for argument in arguments):
            report(f"{function.__name__} is called with more than plain values")
            return function(*args, **kwargs)
        for argument in given_lists:
            if content(argument) != first_contents.setdefault(id(argument), (argument, content(argument)))[1]:
                report(f"a list passed to {function.__name__} is changed meanwhile")
        key = (tuple(map(_known, args)), tuple(kwargs.items()))
        if key not in results:
            if not results and clocks.current is not None:
                clocks.current.on_end.append(verify)
            result = function(*args, **kwargs)
            results[key] = (result, content(result))
        elif content(function(*args, **kwargs)) != content(results[key][0]) or differs(key):
            report(f"{function.__name__} does not always give the same, or its result is changed later")
        return results[key][0]

    return remembered


def _has_value(argument: Any) -> bool:
    """Whether it can be looked up by its value."""
    try:
        hash(argument)
    except TypeError:
        return False
    return True


def _known(value: Any) -> Any:
    return (list, id(value)) if isinstance(value, list) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_plain, value))
    numpy = sys.modules.get("numpy")
    is_scalar = numpy is not None and isinstance(value, numpy.generic)
    return value is None or is_scalar or isinstance(value, (str, bytes, int, float, complex))
