"""What experiments do to the program's data loaders. In the user's process: standard library and torch's own module.

Every batch of every loader passes here, beneath the recorder's seams, so that the wait for it is recorded whatever
the answer: the loader's own batch, or one that it gave before.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from unstall.child import loader_settings
from unstall.child.experiments import limits
from unstall.child.experiments.replay import giver

if TYPE_CHECKING:
    from unstall.child.experiments.engine import Engine
    from unstall.child.experiments.replay import Give
    from unstall.child.main import Targets


class LoaderRecord:
    """What is known of the loaders of one place: batches they gave, how many an epoch has."""

    def __init__(self) -> None:
        self.batches: list[Give] = []
        self.turn = 0
        self.handed_out = self.trained = 0
        """Batches, and those of them that were asked for while gradients were wanted."""
        self.epoch: int | None = None

    @property
    def weight(self) -> tuple[int, int]:
        """The main loader has the largest: it feeds the training, if anything is trained, and gives the most."""
        return self.trained, self.handed_out

    def add(self, batch: Any) -> None:
        self.handed_out += 1
        torch = sys.modules.get("torch")
        self.trained += torch is not None and torch.is_grad_enabled()
        if len(self.batches) < limits.BATCHES:
            self.batches.append(giver(batch))

    @property
    def ready(self) -> bool:
        return len(self.batches) >= limits.LEAST_BATCHES

    def answer(self) -> Any:
        self.turn = (self.turn + 1) % len(self.batches)
        return self.batches[self.turn]((), {})


class Epoch:
    """One pass over a loader: how many batches it has given, really and from the record."""

    def __init__(self, record: LoaderRecord, limit: int | None):
        self.record = record
        self.limit = limit
        self.handed_out = 0
        self.recorded = False

    def over(self) -> bool:
        """Whether the pass would end here; known where the loader has a length, or once a pass has ended.

        A pass of the loader's own batches alone is left to end by itself.
        """
        limit = self.limit if self.limit is not None else self.record.epoch
        return self.recorded and limit is not None and self.handed_out >= limit


class Loading:
    """The loaders of this process and the condition they are in."""

    def __init__(self) -> None:
        self.cached = False
        self.first_only = False
        """Loaders other than the main one give a single batch: validation is cut short."""
        self.known: weakref.WeakKeyDictionary[Any, LoaderRecord] = weakref.WeakKeyDictionary()
        self.places: dict[Any, LoaderRecord] = {}
        """Loaders by where they are iterated over and what they load: programs make a new one every epoch."""
        self.epochs: weakref.WeakKeyDictionary[Any, Epoch] = weakref.WeakKeyDictionary()

    def is_main(self, record: LoaderRecord) -> bool:
        """Whether this is the loader of the main loop, as far as one can tell by now."""
        return all(record.weight >= other.weight for other in self.places.values())

    def record_of(self, loader: Any) -> LoaderRecord:
        """What is known of a loader that is iterated over, or of those that stood in its place before."""
        if loader not in self.known:
            key = _place(loader)
            if key not in self.places and len(self.places) >= limits.MOST_LOADERS:
                del self.places[next(iter(self.places))]
            self.known[loader] = self.places.setdefault(key, LoaderRecord())
        return self.known[loader]

    def install(self, module: Any) -> None:
        """Put the answers in place, in ``torch.utils.data.dataloader``."""
        base = module._BaseDataLoaderIter
        really_next, really_iter = base.__next__, module.DataLoader.__iter__
        loading = self

        class Recorded(base):  # type: ignore[misc, valid-type]
            """An iterator that starts no workers before a batch of the loader's own is wanted."""

            def __init__(self, loader: Any):
                self.loader = loader
                self.real: Any = None
                self._index_sampler = loader._index_sampler  # its length is the iterator's

        def __next__(iterator: Any) -> Any:
            epoch = loading.epochs.get(iterator)
            if epoch is None:
                return really_next(iterator)
            if epoch.over():
                raise StopIteration
            if loading.cached and epoch.record.ready:
                epoch.handed_out += 1
                epoch.recorded = True
                return epoch.record.answer()
            if type(iterator) is Recorded:
                if iterator.real is None:
                    iterator.real = really_iter(iterator.loader)
                iterator = iterator.real
            return loading.give(epoch, really_next, iterator)

        def __iter__(loader: Any) -> Any:
            record = loading.record_of(loader)
            if loading.cached and record.ready:
                iterator = Recorded(loader)
            else:
                iterator = really_iter(loader)
            epoch = loading.epochs[iterator] = Epoch(record, _batches(loader))
            if loading.first_only and not loading.is_main(record):
                epoch.limit, epoch.recorded = 1, True
            return iterator

        base.__next__ = __next__
        module.DataLoader.__iter__ = __iter__

    def give(self, epoch: Epoch, really_next: Any, iterator: Any) -> Any:
        """A batch of the loader's own, kept to be given again."""
        try:
            batch = really_next(iterator)
        except StopIteration:
            epoch.record.epoch = epoch.handed_out or None
            raise
        epoch.handed_out += 1
        epoch.record.add(batch)
        return batch


def _place(loader: Any) -> Any:
    """The same for a loader that takes the place of another: the user's line, the kind of dataset and its length."""
    frame: Any = sys._getframe(1)
    while frame is not None and ("torch.utils.data" in frame.f_globals.get("__name__", "") or _is_own(frame)):
        frame = frame.f_back
    line = (frame.f_code, frame.f_lasti) if frame is not None else None
    return line, type(loader.dataset), _batches(loader), loader.batch_size


def _is_own(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("unstall.")


def _batches(loader: Any) -> int | None:
    """Batches in a pass over a loader of a map-style dataset; asking others would make torch count and warn."""
    sampler = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
    if loader._dataset_kind != 0:  # torch's _DatasetKind.Map
        return None
    try:
        return len(sampler) or None
    except (TypeError, NotImplementedError):
        return None


def targets(engine: Engine, settings: dict[str, Any]) -> Targets:
    """What to install where, for the engine and the settings of this child."""
    installers = [engine.loading.install]
    if settings.get("loader"):
        installers.append(lambda module: configure(module, settings["loader"]))
    return {"torch.utils.data.dataloader": installers, "torch.utils.data._utils.fetch": [_looker(engine)]}


def configure(module: Any, settings: dict[str, Any]) -> None:
    """Loaders of ``settings["from"]`` workers are made with the other settings."""
    workers = settings["from"]
    others = {name: value for name, value in settings.items() if name != "from"}
    loader_settings.override(module, others, lambda arguments: arguments.get("num_workers", 0) == workers)


def _looker(engine: Engine) -> Any:
    """Loader workers look at the board before each batch they make."""

    def install(module: Any) -> None:
        for fetcher in module._BaseDatasetFetcher.__subclasses__():
            if "fetch" in fetcher.__dict__:
                fetcher.fetch = _looking(fetcher.fetch, engine)

    return install


def _looking(fetch: Any, engine: Engine) -> Any:
    def look_and_fetch(self: Any, possibly_batched_index: Any) -> Any:
        if not engine.in_main:
            engine.poll()
        return fetch(self, possibly_batched_index)

    look_and_fetch.__name__, look_and_fetch.__qualname__ = fetch.__name__, fetch.__qualname__
    return look_and_fetch
