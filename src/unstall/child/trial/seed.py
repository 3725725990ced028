"""Make two runs of a program comparable: the same random numbers in both, however many workers load the data.

Global generators start from ``plan["seed"]`` (a program that seeds them itself overrides it). Each sample of a map-
style dataset is made under a seed drawn from (seed, epoch, index), each epoch's order from (seed, epoch), where
epochs are counted whichever loader they are of, and the generators of the main process are left as they were: so a
worker count changes no random number anywhere.
``plan["shift"]``: the seeds that the program itself sets are others, by this, those of its private generators too.
``plan["fold"]``: indices are taken modulo this, which makes the later visits of a sample come soon.
"""

from __future__ import annotations

import copyreg
import functools
import itertools
import operator
import random
import sys
import zlib
from collections import Counter
from typing import Any

_SEED_NAMES = ("a", "x", "seed", "entropy", "key")
"""What the parameter is called that takes a seed."""
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "SeedSequence")
"""NumPy's classes that take a seed."""
_OF_ENVIRONMENTS = ("gymnasium.utils.seeding", "gym.utils.seeding")


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Seed what is seedable now, and each library when it is imported."""
    seed, fold, shift = plan.get("seed"), plan.get("fold"), plan.get("shift")
    hooks: list[tuple[str, Any]] = []
    if shift:
        _shift(random, "seed", shift)
        _shift(random.Random, "seed", shift, before=1)
        hooks += [
            ("numpy.random", lambda module: _shift(module, "seed", shift)),
            ("numpy.random", lambda module: _shift(module, "default_rng", shift)),
            ("numpy.random", lambda module: _shift_class(module, "RandomState", ("__init__", "seed"), shift)),
            *(
                ("numpy.random", functools.partial(_shift_class, name=name, methods=("__init__",), shift=shift))
                for name in _BIT_GENERATORS
            ),
            ("jax.random", lambda module: _shift(module, "PRNGKey", shift)),
            ("jax.random", lambda module: _shift(module, "key", shift)),
            ("torch.random", lambda module: _shift(module, "manual_seed", shift)),
            ("torch", lambda module: _shift_class(module, "Generator", ("manual_seed",), shift)),
        ]
    if seed is not None:
        random.seed(seed)
        hooks += [
            ("numpy.random", lambda module: _numpy(module, seed)),
            ("torch", lambda module: module.manual_seed(seed)),
            *((name, lambda module: _environments(module, seed)) for name in _OF_ENVIRONMENTS),
        ]
    if seed is not None or fold is not None:
        hooks += [
            ("torch.utils.data.dataloader", lambda module: _loader(module, seed, fold)),
            ("torch.utils.data._utils.fetch", lambda module: _fetch(module, seed)),
        ]
    return hooks


def _shift(owner: Any, name: str, shift: int, *, before: int = 0) -> None:
    """Let a function that takes a seed take another one where that is a whole number; nothing in versions without it.

    ``before``: how many arguments come before the seed: 1 for a method.
    """
    original = getattr(owner, name, None)
    if original is None:
        return

    def other(value: Any) -> Any:
        return value ^ shift if isinstance(value, int) else value

    @functools.wraps(original)
    def shifted(*args: Any, **kwargs: Any) -> Any:
        if "spawn_key" in kwargs:  # a child of a sequence whose seed is another one already
            return original(*args, **kwargs)
        named = {key: other(value) if key in _SEED_NAMES else value for key, value in kwargs.items()}
        return original(*args[:before], *map(other, args[before : before + 1]), *args[before + 1 :], **named)

    setattr(owner, name, shifted)


def _shift_class(module: Any, name: str, methods: tuple[str, ...], shift: int) -> None:
    """The same of methods of a class written in C: a subclass takes its place, to which all instances belong."""
    original: Any = getattr(module, name, None)
    if original is None:
        return

    class AnyInstance(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

    derived = AnyInstance(name, (original,), {"__module__": original.__module__, "__doc__": original.__doc__})
    for method in methods:
        _shift(derived, method, shift, before=1)
    setattr(module, name, derived)
    # In a pickle the original stands for it, by nothing that is unstall's: it can be read anywhere.
    copyreg.pickle(AnyInstance, lambda cls: (operator.itemgetter(0), ((cls.__base__,),)))  # type: ignore[arg-type]


def _numpy(module: Any, seed: int) -> None:
    """The global generator, and those that a program makes without a seed."""
    module.seed(seed % 2**32)
    original = module.default_rng
    fresh = itertools.count(seed)

    def default_rng(seed: Any = None) -> Any:
        return original(next(fresh) if seed is None else seed)

    default_rng.__doc__ = original.__doc__
    module.default_rng = default_rng


def _environments(module: Any, seed: int) -> None:
    """The generators of environments, and of their spaces, that a program resets without a seed."""
    original = module.np_random
    fresh = itertools.count()

    @functools.wraps(original)
    def np_random(given: Any = None) -> Any:
        if given is None:
            process = sys.modules.get("multiprocessing.process")
            which = process.current_process()._identity if process is not None else ()  # each of a vector's has its own
            given = zlib.crc32(repr((seed, which, next(fresh))).encode())
        return original(given)

    module.np_random = np_random


class Generators:
    """The state of the process's global generators, put back at the end of a ``with`` block."""

    def __enter__(self) -> None:
        self.python = random.getstate()
        self.torch, self.numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if self.torch is not None:
            self.torch_state = self.torch.random.get_rng_state()
        if self.numpy is not None:
            self.numpy_state = self.numpy.random.get_state()

    def __exit__(self, *error: object) -> None:
        random.setstate(self.python)
        if self.torch is not None:
            self.torch.random.set_rng_state(self.torch_state)
        if self.numpy is not None:
            self.numpy.random.set_state(self.numpy_state)


def seed_all(*key: Any) -> None:
    """Seed the global generators from a key, the same in every process."""
    number = zlib.crc32(repr(key).encode())
    random.seed(number)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        torch.random.default_generator.manual_seed(number)
    if numpy is not None:
        numpy.random.seed(number)


class Batch:
    """The indices of one batch on their way to the process that fetches them, and which epoch asks."""

    def __init__(self, indices: Any, epoch: int):
        self.indices, self.epoch = indices, epoch


def _loader(module: Any, seed: int | None, fold: int | None) -> None:
    base = module._BaseDataLoaderIter
    init, next_index = base.__init__, base._next_index
    epochs: Counter[tuple[str, int | None]] = Counter()
    """How many have begun, of each kind of sampler and number of samples."""

    def __init__(self: Any, loader: Any) -> None:
        if seed is None:
            init(self, loader)
            return
        with Generators():
            seed_all(seed, "workers", epochs[_kind(loader._index_sampler)])
            init(self, loader)

    def _next_index(self: Any) -> Any:
        # The sampler draws what it needs for an epoch when its first index is asked for.
        if self.__dict__.get("_unstall_sampler") is not self._sampler_iter:
            self._unstall_sampler = self._sampler_iter
            kind = _kind(self._index_sampler)
            self._unstall_epoch = epochs[kind]
            epochs[kind] += 1
            if seed is not None and self._dataset_kind == module._DatasetKind.Map:
                with Generators():
                    seed_all(seed, "order", self._unstall_epoch)
                    return Batch(_folded(next_index(self), fold), self._unstall_epoch)
        index = next_index(self)
        if self._dataset_kind != module._DatasetKind.Map:
            return index
        return Batch(_folded(index, fold), self._unstall_epoch)

    base.__init__, base._next_index = __init__, _next_index


def _kind(index_sampler: Any) -> tuple[str, int | None]:
    """What a loader's sampler is known by: many programs make a new loader for each epoch, or a new dataset."""
    sampler = getattr(index_sampler, "sampler", index_sampler)
    try:
        return type(sampler).__qualname__, len(sampler)
    except TypeError:  # it does not know how many
        return type(sampler).__qualname__, None


def _folded(index: Any, fold: int | None) -> Any:
    if fold is None:
        return index
    if isinstance(index, (list, tuple)):
        return [_folded(item, fold) for item in index]
    return index % fold if isinstance(index, int) else index


class SeededDataset:
    """A dataset whose samples are each made under a seed of their own."""

    def __init__(self, dataset: Any, seed: int, epoch: int):
        self._dataset, self._seed, self._epoch = dataset, seed, epoch
        if getattr(dataset, "__getitems__", None):
            self.__getitems__ = self._getitems

    def __getitem__(self, index: Any) -> Any:
        seed_all(self._seed, self._epoch, index)
        return self._dataset[index]

    def _getitems(self, indices: Any) -> Any:
        seed_all(self._seed, self._epoch, indices)
        return self._dataset.__getitems__(indices)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


def _fetch(module: Any, seed: int | None) -> None:
    base = module._MapDatasetFetcher
    original = base.fetch

    def fetch(self: Any, batch: Any) -> Any:
        if not isinstance(batch, Batch):
            return original(self, batch)
        if seed is None:
            return original(self, batch.indices)
        dataset = self.dataset
        self.dataset = SeededDataset(dataset, seed, batch.epoch)
        try:
            with Generators():
                return original(self, batch.indices)
        finally:
            self.dataset = dataset

    base.fetch = fetch
