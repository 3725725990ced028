"""What a remedy is given: the program as it now is, what was measured of it, and what it made as it ran."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from unstall.child.seams import autograd
from unstall.child.seams.loader import EPOCH
from unstall.optimize.observed import ObservedLoader, RuntimeFacts
from unstall.optimize.passes import goes_through_once
from unstall.optimize.program import Program
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.places import CallSite
from unstall.optimize.thresholds import REACHED_PEAK
from unstall.records.measurements import Measurement
from unstall.records.report import Finding, Report


@dataclass(frozen=True)
class RemedyContext:
    """The program as it now is, and what was found out about it."""

    program: Program
    report: Report
    measurement: Measurement
    sources: Sources
    runtime: RuntimeFacts
    cores: int

    def share(self, *phases: Any) -> float:
        """Share of the step in these phases, 0 to 1."""
        return min(1.0, self.measurement.share(*phases))

    def finding_of(self, cause: str) -> Finding | None:
        """The finding that names this cause; None where none does."""
        return next((finding for finding in self.report.findings if finding.cause == cause), None)

    @property
    def on_gpu(self) -> bool:
        """Whether the model runs on a GPU."""
        return self.measurement.model.on_gpu

    @property
    def arithmetic(self) -> float:
        """How much of the model's time is arithmetic, 0 to 1, by the share of the machine's peak that it reaches."""
        utilization = self.report.throughput.mfu
        return 0.5 if utilization is None else min(1.0, utilization / REACHED_PEAK)

    @property
    def trains(self) -> bool:
        """Whether the program goes backward or makes an optimizer."""
        return any(site.seam == autograd.BACKWARD.event for site in self.measurement.sites) or bool(
            self.runtime.optimizers
        )

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

    def own_dataset(self) -> tuple[ObservedLoader, Path]:
        """The main loader, and the user's file in which its dataset makes samples. Raises NotApplicable."""
        loader = self.main_loader
        if loader is None or not loader.map_style:
            raise NotApplicable("there is no map-style dataset in the main loop")
        path = self.user_file(loader.getitem_file)
        if path is None:
            raise NotApplicable(f"the samples of {loader.dataset} are not made in the program's own code")
        return loader, path

    def refuse_one_pass(self) -> None:
        """Raise NotApplicable where the program is seen to meet no sample again: what is kept of one is of no use."""
        if goes_through_once(site for site in self.measurement.sites if site.seam == EPOCH.event):
            raise NotApplicable("the program goes through its loader once: no sample is met again")

    def user_file(self, name: str | Path | None) -> Path | None:
        """The path, when it is a source file of the user's that may be changed."""
        if not name:
            return None
        path = Path(name)
        path = path if path.is_absolute() else Path.cwd() / path
        return path if self.program.owns(path) else None

    def key(self, path: Path, *parts: object) -> str:
        """What tells a change of a file from others of its remedy: ``models/net.py:forward:12``."""
        return ":".join(map(str, (self.program.name_of(path), *parts)))

    def file_of(self, call: CallSite | None) -> Path | None:
        """The file that a call stands in, when it is a source file of the user's that may be changed."""
        return self.user_file(call.file) if call is not None else None

    def locate(self, site: CallSite | None, name: str = "") -> tuple[Path, SourceModule, cst.Call]:
        """The file, its source and the node of a call that was seen. Raises NotApplicable where it is not the user's.

        ``name``: the end of what it calls, to tell it from others on its line where the columns are not known.
        """
        path = self.file_of(site)
        if path is None or site is None:
            raise NotApplicable("the call is inside a library")
        module = self.sources.module(path)
        call = module.call(site, name)
        if call is None:
            raise NotApplicable(f"{path.name}:{site.line}: the call cannot be distinguished from others on its line")
        return path, module, call

    def script(self) -> tuple[Path, SourceModule]:
        """The script and its source. Raises NotApplicable where it is not the program's own."""
        path = self.program.script
        if path is None or not self.program.owns(path):
            raise NotApplicable("the script is not the program's own")
        return path, self.sources.module(path)

    def script_with(self, name: str) -> tuple[Path, SourceModule, str]:
        """The script, its source, and how that spells a module that it imports. Raises NotApplicable."""
        path, module = self.script()
        alias = module.alias(name)
        if alias is None:
            raise NotApplicable(f"the script does not import {name} itself")
        return path, module, alias
