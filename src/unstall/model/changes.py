"""What if: settings and components of a pipeline changed, as a person writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from unstall.model import thresholds
from unstall.model.function_shares import DATA, Key
from unstall.model.pipeline_model import MODEL, Pipeline
from unstall.model.team_stalls import with_fewer_stalls
from unstall.model.warm_caches import with_warm_caches

_ALIASES = {
    "callbacks": "callback",
    "collectives": "comm",
    "logging": "callback",
    "metrics": "callback",
    "dataloader": "data",
    "loader": "data",
    "data_wait": "data",
}
_FACTOR = re.compile(r"^(\d+(?:\.\d*)?|\.\d+)\s*[x×]$")
_SHARE = re.compile(r"^([+-]\d+(?:\.\d*)?)\s*%$")


_SETTINGS = ("workers", "prefetch", "threads", "cores", "in_order", "persistent")


class ChangeError(ValueError):
    """A change that cannot be asked for; the message says what is wrong and what can be."""


@dataclass(frozen=True)
class Changes:
    """Settings by their name in torch's DataLoader, None: as recorded; and factors of components."""

    workers: int | None = None
    prefetch: int | None = None
    in_order: bool | None = None
    persistent: bool | None = None
    threads: int | None = None
    cores: float | None = None
    scales: Mapping[str, float] = field(default_factory=dict)
    """How many times as long a component takes (a phase, ``data``, ``collate``, ``io``, or a function)."""
    aside: frozenset[str] = frozenset()
    """Phases moved to a thread of their own."""

    def describe(self) -> str:
        """In one line, as it was asked for."""
        settings = {name: value for name in _SETTINGS if (value := getattr(self, name)) is not None}
        words = [
            f"{name} {value}" if isinstance(value, bool) else f"{name} {value:g}" for name, value in settings.items()
        ]
        words += [f"{name} async" for name in sorted(self.aside)]
        words += [f"{name} {factor:g}x" for name, factor in self.scales.items()]
        return ", ".join(words) or "nothing changed"


AS_RECORDED = Changes()
"""No change at all."""


def parse(assignments: Iterable[str], **settings: int | float | bool | None) -> Changes:
    """``name=0.5x``, ``name=-20%``, ``name=0`` (free) and ``callbacks=async``. Raises ChangeError in one line."""
    scales: dict[str, float] = {}
    aside = set()
    for text in assignments:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise ChangeError(f"--set {text}: write it as name=0.5x, name=-20% or name=async")
        name = _ALIASES.get(name, name)
        if value == "async":
            aside.add(name)
        elif value != "sync":
            scales[name] = _factor(text, value)
    return Changes(scales=scales, aside=frozenset(aside), **settings)  # type: ignore[arg-type]


def _factor(text: str, value: str) -> float:
    if value in ("0", "free"):
        return 0.0
    if match := _FACTOR.match(value):
        return float(match[1])
    if (match := _SHARE.match(value)) and float(match[1]) >= -100:
        return 1 + float(match[1]) / 100
    raise ChangeError(f"--set {text}: {value} is neither a factor (0.5x), a difference (-20%), free, nor async")


def apply(pipeline: Pipeline, changes: Changes) -> Pipeline:
    """The pipeline after the changes. Raises ChangeError for one that the recorded program has no place for."""
    changed = _settings(_scale(pipeline, changes.scales), changes)
    pipeline = with_warm_caches(pipeline, with_fewer_stalls(pipeline, changed))
    if changes.threads is not None and changes.threads != pipeline.threads:
        pipeline = _threads(pipeline, changes.threads)
    for name in changes.aside:
        if name not in pipeline.phases:
            raise ChangeError(f"{name}=async: only a phase can move to its own thread ({_phases(pipeline)})")
        if name in MODEL or name == "env":
            raise ChangeError(f"{name}=async: the next step needs what {name} gives")
    return replace(pipeline, aside=pipeline.aside | changes.aside)


def _settings(pipeline: Pipeline, changes: Changes) -> Pipeline:
    layout = pipeline.layout
    for_loader = {name: getattr(changes, name) for name in ("workers", "prefetch", "in_order", "persistent")}
    if not pipeline.has_loader and any(value is not None for value in for_loader.values()):
        raise ChangeError("the recorded loop has no DataLoader: workers, prefetch and order cannot be changed")
    for name, least in (("workers", 0), ("prefetch", 1), ("threads", 1), ("cores", 0.1)):
        value = getattr(changes, name)
        if value is not None and not value >= least:
            raise ChangeError(f"{name} must be at least {least}, not {value}")
    settings = {name: getattr(changes, name) for name in ("cores", "prefetch", "in_order")}
    layout = replace(layout, **{name: value for name, value in settings.items() if value is not None})
    if changes.workers is not None and changes.workers != layout.workers:
        each_s = layout.epoch_open_s / layout.workers if layout.workers else thresholds.START_WORKER_S
        layout = replace(layout, workers=changes.workers, epoch_open_s=each_s * changes.workers)
    persistent = pipeline.persistent_workers if changes.persistent is None else changes.persistent
    if persistent and not pipeline.persistent_workers:
        layout = replace(layout, epoch_open_s=0.0)
    return replace(pipeline, layout=layout, persistent_workers=persistent)


def _threads(pipeline: Pipeline, threads: int) -> Pipeline:
    """Amdahl's law, its parallel part from how many cores the recorded threads kept busy."""
    if pipeline.on_device:
        return replace(pipeline, threads=threads)
    now, width = pipeline.threads, pipeline.layout.width
    parallel = (width - 1) / width * now / (now - 1) if now > 1 else thresholds.PARALLEL
    parallel = min(1.0, parallel)
    # In seconds of one thread: those of the recorded wall time that several threads shared.
    alone = 1 / (1 - parallel + parallel / now)
    usable = min(threads, pipeline.layout.cores)
    after = alone * (1 - parallel + parallel / usable)
    wide = np.where(np.isin(pipeline.phases, MODEL), after, 1.0)
    layout = replace(pipeline.layout, width=max(1.0, min(alone / after, usable)))
    return replace(pipeline, compute=pipeline.compute * wide, threads=threads, layout=layout)


def _scale(pipeline: Pipeline, scales: Mapping[str, float]) -> Pipeline:
    """The pipeline with components that take so many times as long."""
    functions: dict[Key, float] = {}
    for name, factor in scales.items():
        scaled = _scale_part(pipeline, name, factor)
        if scaled is None:
            functions |= dict.fromkeys(_find(pipeline, name), factor)
        else:
            pipeline = scaled
    if functions:
        pipeline = pipeline.scale_service(pipeline.function_shares.factor(DATA, functions))
        for phase in dict.fromkeys((*pipeline.phases, *pipeline.closing)):
            component = DATA if phase == "data_wait" else phase
            pipeline = pipeline.scale_place(phase, pipeline.function_shares.factor(component, functions))
    return replace(pipeline, function_shares=pipeline.function_shares.scaled(functions))


def _scale_part(pipeline: Pipeline, name: str, factor: float) -> Pipeline | None:
    """With a phase, what comes between epochs, the data or the device so many times as long; None: no part's name."""
    if name in pipeline.phases or name in pipeline.closing:
        return pipeline.scale_place(name, factor)
    if name in ("validation", "epoch"):
        layout = pipeline.layout
        return replace(pipeline, layout=replace(layout, epoch_close_s=layout.epoch_close_s * factor))
    if name in (DATA, "collate", "io") and pipeline.has_loader:
        return _scale_data(pipeline, name, factor)
    if name == "device" and pipeline.on_device:
        return replace(pipeline, device_s=pipeline.device_s * factor)
    if name == DATA and "data_wait" in pipeline.phases:
        return pipeline.scale_place("data_wait", factor)
    return None


def _scale_data(pipeline: Pipeline, name: str, factor: float) -> Pipeline:
    if name == "io":
        return replace(pipeline, service=pipeline.service * np.array([1.0, factor]))
    if name == "collate":
        return pipeline.scale_service(1 - pipeline.collate_share * (1 - factor))
    layout = replace(pipeline.layout, epoch_open_s=pipeline.layout.epoch_open_s * factor)
    return replace(pipeline.scale_service(factor), layout=layout)


def _find(pipeline: Pipeline, name: str) -> set[Key]:
    keys = pipeline.function_shares.find(name)
    if len(keys) > 1:
        names = ", ".join(sorted(".".join(key[-3:]) for key in keys)[:4])
        raise ChangeError(f"{name} may be {names}: write more of the name")
    if not keys:
        largest = ", ".join(
            f"{function} ({component})" for function, component, _ in pipeline.function_shares.largest()
        )
        hint = f"the most sampled functions are {largest}" if largest else "the run has no stack samples"
        raise ChangeError(f"no sampled function and no phase is called {name} (phases: {_phases(pipeline)}); {hint}")
    return keys


def _phases(pipeline: Pipeline) -> str:
    used = [name for name in pipeline.phases if pipeline.phase_s(name) > 0]
    return ", ".join([*used, *([DATA, "collate", "io"] if pipeline.has_loader else [])])
