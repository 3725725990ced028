"""Where the program makes its loaders and optimizers, and what they are: ``probe.jsonl``, one object a line."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from typing import Any

from unstall.child import reading, trial
from unstall.child.reading import line_of

_MAX_FACTS = 200
_MAX_ATTRIBUTES = 60
_SAMPLED_CALLS, _SAMPLE_EVERY_S = 4, 1.0  # of models
_MAX_SHAPES = 3
_CALLERS = 3


class Probe:
    """Appends facts; silent after some hundreds, and in helper processes."""

    def __init__(self, folder: str):
        self.path = os.path.join(folder, "probe.jsonl")
        self.count = 0

    def write(self, kind: str, site: Any, **facts: Any) -> None:
        """One line: the kind of thing, the user's line that made it, and what is known of it."""
        if self.count >= _MAX_FACTS or trial.is_helper():
            return
        self.count += 1
        where = _site(site) if site is not None else None
        with open(self.path, "a") as file:
            file.write(json.dumps({"kind": kind, "site": where, **facts}, default=str) + "\n")


def _site(frame: Any) -> dict[str, Any]:
    code = frame.f_code
    return {"file": code.co_filename, "line": line_of(frame), "function": code.co_name, "span": _span(frame)}


def _span(frame: Any) -> list[int] | None:
    """(line, end line, column, end column) of the call that the frame is in, where the interpreter knows it."""
    positions = getattr(frame.f_code, "co_positions", None)
    position = next(itertools.islice(positions(), frame.f_lasti // 2, None), ()) if positions is not None else ()
    return list(position) if position and None not in position else None


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Hooks at the constructors."""
    probe = Probe(folder)
    samplers: list[_CallSampler] = []
    return [
        ("torch.utils.data.dataloader", lambda module: _loaders(module, probe)),
        ("torch.optim.optimizer", lambda module: _optimizers(module, probe)),
        ("torch", lambda module: _threads(module, probe)),
        ("torch.nn.modules.module", lambda module: samplers.append(_models(module, probe))),
        ("torch._dynamo", lambda module: _disarm(samplers)),
    ]


def _loaders(module: Any, probe: Probe) -> None:
    original = module.DataLoader.__init__
    iterate = module.DataLoader.__iter__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        site = trial.user_frame(1)
        original(self, *args, **kwargs)
        dataset = _inner(self.dataset)
        getitem = getattr(type(dataset), "__getitem__", None)
        code = getattr(getitem, "__code__", None)
        probe.write(
            "loader",
            site,
            id=id(self),
            num_workers=self.num_workers,
            batch_size=self.batch_size,
            persistent_workers=self.persistent_workers,
            map_style=self._dataset_kind == module._DatasetKind.Map,
            dataset=type(dataset).__qualname__,
            getitem_file=getattr(code, "co_filename", None),
            getitem_line=getattr(code, "co_firstlineno", None),
            attributes=_attributes(dataset),
            collates_by_default=self.collate_fn is module._utils.collate.default_collate,
        )

    def __iter__(self: Any) -> Any:
        probe.write("iterated", trial.user_frame(1), id=id(self))
        return iterate(self)

    module.DataLoader.__init__, module.DataLoader.__iter__ = __init__, __iter__


def _inner(dataset: Any) -> Any:
    """The dataset inside the library's own wrappers, such as Subset."""
    for _ in range(4):
        inner = getattr(dataset, "dataset", None)
        if inner is None or not type(dataset).__module__.startswith("torch."):
            break
        dataset = inner
    return dataset


def _attributes(dataset: Any) -> dict[str, str]:
    """Type names of an object's attributes; of None, True and False these names."""
    attributes = list(reading.attributes(dataset).items())[:_MAX_ATTRIBUTES]
    return {name: str(value) if value is None or value is True or value is False else type(value).__name__
            for name, value in attributes}  # fmt: skip


def _optimizers(module: Any, probe: Probe) -> None:
    original = module.Optimizer.__init__

    def __init__(self: Any, params: Any, defaults: Any) -> None:
        site = trial.user_frame(1)
        original(self, params, defaults)
        probe.write(
            "optimizer",
            site,
            type=type(self).__name__,
            module=type(self).__module__,
            fused=self.defaults.get("fused"),
            foreach=self.defaults.get("foreach"),
        )

    module.Optimizer.__init__ = __init__


def _threads(module: Any, probe: Probe) -> None:
    original = module.set_num_threads

    def set_num_threads(count: int) -> None:
        probe.write("threads", trial.user_frame(1), count=count)
        original(count)

    module.set_num_threads = set_num_threads
    probe.write("torch", None, threads=module.get_num_threads())


def _models(module: Any, probe: Probe) -> _CallSampler:
    """Where models are called, with what shapes: a few calls are sampled every second, the others are not slowed."""
    sampler = _CallSampler(module, probe)
    if not trial.is_helper():
        sampler.arm()
        threading.Thread(target=sampler.keep_sampling, daemon=True, name="unstall-probe").start()
    return sampler


def _disarm(samplers: list[_CallSampler]) -> None:
    for sampler in samplers:
        sampler.disarm()


class _CallSampler:
    """A hook before the forward of modules that takes itself away after some calls."""

    def __init__(self, module: Any, probe: Probe):
        self.module, self.probe = module, probe
        self.handle: Any = None
        self.left = 0
        self.samples_by_site: dict[Any, int] = {}

    def arm(self) -> None:
        """Sample the next calls, unless a compiler is there: it would trace the hook, and cannot."""
        self.left = _SAMPLED_CALLS
        if self.handle is None and not _compiles():
            self.handle = self.module.register_module_forward_pre_hook(self.sample)

    def disarm(self) -> None:
        """Sample no call any more."""
        if self.handle is not None:
            self.handle.remove()
            self.handle = None

    def keep_sampling(self) -> None:
        """Sample again and again, until a compiler is there: it would compile anew each time."""
        while not _compiles():
            time.sleep(_SAMPLE_EVERY_S)
            self.arm()

    def sample(self, module: Any, args: Any) -> None:
        """Write down a call from outside of any module."""
        if _depth(self.module.Module._call_impl.__code__) > 1:
            return
        self.left -= 1
        if self.left <= 0:
            self.disarm()
        shapes = [list(value.shape) for value in args if hasattr(value, "shape")]
        frames = _users_frames(trial.user_frame(1))
        key = tuple((frame.f_code, frame.f_lasti) for frame in frames)
        if not frames or self.samples_by_site.setdefault(key, 0) >= _MAX_SHAPES:
            return
        self.samples_by_site[key] += 1
        self.probe.write(
            "model",
            frames[0],
            shapes=shapes,
            bytes=sum(value.numel() * value.element_size() for value in args if hasattr(value, "element_size")),
            callers=[_site(frame) for frame in frames[1:]],
        )


def _compiles() -> bool:
    """Whether torch's compiler is there."""
    return "torch._dynamo" in sys.modules


def _depth(code: Any) -> int:
    """How often a function is on the stack."""
    frame: Any = sys._getframe(1)
    count = 0
    while frame is not None:
        count += frame.f_code is code
        frame = frame.f_back
    return count


def _users_frames(frame: Any) -> list[Any]:
    """A frame of the user's, and those above it."""
    frames: list[Any] = []
    while frame is not None and len(frames) <= _CALLERS:
        frames.append(frame)
        frame = trial.user_frame_above(frame.f_back)
    return frames
