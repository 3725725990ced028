"""What a remedy is given: the program as it now is, what was measured of it, and what it made while it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unstall.optimize.program import Program
from unstall.optimize.source.files import Sources
from unstall.optimize.source.places import CallSite
from unstall.records.measurements import Measurement
from unstall.records.report import Report


@dataclass(frozen=True)
class ObservedLoader:
    """A DataLoader that the program made."""

    call: CallSite | None
    """The call that made it; None when no code of the user's did."""
    num_workers: int = 0
    batch_size: int | None = None
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory: bool = False
    map_style: bool = True
    dataset: str = ""
    """The class of the dataset inside the library's own wrappers."""
    getitem_file: str | None = None
    getitem_line: int = 0
    """The line on which its ``__getitem__`` begins, decorators included."""


@dataclass(frozen=True)
class ObservedOptimizer:
    """An optimizer that the program made."""

    call: CallSite | None
    type: str = ""
    module: str = ""
    fused: bool | None = None
    foreach: bool | None = None


@dataclass(frozen=True)
class ObservedModelCall:
    """A call of a model from outside of any model, one for each place and a few shapes."""

    call: CallSite | None
    callers: tuple[CallSite, ...] = ()
    """The program's own frames above it, the nearest first."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of the tensors and arrays that it is given."""
    bytes: int = 0
    """Of these together."""


@dataclass(frozen=True)
class ObservedThreadSetting:
    """A call of torch.set_num_threads."""

    call: CallSite | None
    count: int = 0


@dataclass(frozen=True)
class RuntimeFacts:
    """What the program made while it ran."""

    loaders: tuple[ObservedLoader, ...] = ()
    """The loaders that were iterated, in the order in which they first were."""
    optimizers: tuple[ObservedOptimizer, ...] = ()
    thread_settings: tuple[ObservedThreadSetting, ...] = ()
    model_calls: tuple[ObservedModelCall, ...] = ()
    threads: int | None = None
    """Threads of torch's operators when it was imported."""


@dataclass(frozen=True)
class RemedyContext:
    """The program as it now is, and what was found out about it."""

    program: Program
    report: Report
    measurement: Measurement
    sources: Sources
    runtime: RuntimeFacts
    cores: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What is set at run time so far."""

    def share(self, *phases: Any) -> float:
        """Share of the step in these phases, 0 to 1."""
        return min(1.0, self.measurement.share(*phases))

    @property
    def on_gpu(self) -> bool:
        """Whether the model runs on a GPU."""
        return self.measurement.model.device.startswith("cuda")

    @property
    def trains(self) -> bool:
        """Whether the program goes backward or makes an optimizer."""
        return any(site.seam == "~backward" for site in self.measurement.sites) or bool(self.runtime.optimizers)

    @property
    def main_loader(self) -> ObservedLoader | None:
        """The loader that the steps draw from: the first that was iterated of the kind that was measured."""
        measured = self.measurement.loader
        if measured is not None:
            wanted = (measured.batch_size, measured.workers, measured.dataset)
            for loader in self.runtime.loaders:
                if (loader.batch_size, loader.num_workers, loader.dataset) == wanted:
                    return loader
        return self.runtime.loaders[0] if self.runtime.loaders else None

    def user_file(self, name: str | Path | None) -> Path | None:
        """The path, when it is a source file of the user's that may be changed."""
        if not name:
            return None
        path = Path(name)
        path = path if path.is_absolute() else Path.cwd() / path
        return path if self.program.owns(path) else None

    def file_of(self, call: CallSite | None) -> Path | None:
        """The file that a call stands in, when it is a source file of the user's that may be changed."""
        return self.user_file(call.file) if call is not None else None
