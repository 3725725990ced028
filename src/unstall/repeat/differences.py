"""How two runs differ, besides their speed: named before any conclusion is drawn."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from unstall.records.archive import Archive
from unstall.records.comparison import ChangedFact, Subject
from unstall.records.measurements import Measurement
from unstall.repeat.thresholds import LOAD_CORES, MEMORY_TOLERANCE, SAMPLES_TOLERANCE

_SUBJECTS: dict[str, Subject] = {
    "cpu": "machine",
    "cpu_count": "machine",
    "memory_bytes": "machine",
    "gpus": "machine",
    "platform": "software",
    "driver": "software",
    "python": "software",
    "torch": "software",
    "torch_threads": "settings",
}
_NAMES = {"cpu_count": "cores", "memory_bytes": "memory", "torch_threads": "torch threads", "gpus": "GPUs"}
_CODE_HEX = 8
SAMPLES = "samples a step"
"""The name of the setting that changes the work in a step."""


def between(a: Archive, b: Archive) -> list[ChangedFact]:
    """What was different, the machine first and the code last."""
    changed = settings(a.measurement, b.measurement)
    return [*_environment(a, b), *_libraries(a, b), *_load(a, b), *changed, *_command(a, b), *_code(a, b)]


def of_the_machine(differences: list[ChangedFact]) -> list[ChangedFact]:
    """Those that are not changes of the program: they could explain a change of speed by themselves."""
    return [difference for difference in differences if difference.subject in ("machine", "software", "load")]


def _environment(a: Archive, b: Archive) -> list[ChangedFact]:
    first, second = a.report.run.environment, b.report.run.environment
    differences = []
    for key, subject in _SUBJECTS.items():
        if key not in first or key not in second or _alike(key, first[key], second[key]):
            continue
        differences.append(
            ChangedFact(subject, _NAMES.get(key, key), _shown(key, first[key]), _shown(key, second[key]))
        )
    return differences


def _libraries(a: Archive, b: Archive) -> list[ChangedFact]:
    """Those that both runs imported, in another version; torch has its own line."""
    first, second = (archive.report.run.environment.get("libraries", {}) for archive in (a, b))
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return []
    return [
        ChangedFact("software", name, str(first[name]), str(second[name]))
        for name in sorted(first.keys() & second.keys() - {"torch"})
        if first[name] != second[name]
    ]


def _alike(key: str, a: Any, b: Any) -> bool:
    if key == "memory_bytes" and all(isinstance(value, (int, float)) for value in (a, b)):
        return abs(a - b) <= MEMORY_TOLERANCE * max(a, b)
    return bool(a == b)


def _shown(key: str, value: Any) -> str:
    if key == "gpus" and isinstance(value, list):
        return ", ".join(str(gpu.get("name", "?")) if isinstance(gpu, dict) else str(gpu) for gpu in value) or "none"
    if key == "memory_bytes" and isinstance(value, (int, float)):
        return f"{value / 1e9:.3g} GB"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _load(a: Archive, b: Archive) -> list[ChangedFact]:
    first = a.report.utilization.other_processes_cores or 0.0
    second = b.report.utilization.other_processes_cores or 0.0
    if abs(first - second) < LOAD_CORES:
        return []
    return [ChangedFact("load", "cores taken by other processes", f"{first:.2g}", f"{second:.2g}")]


_LOADER = {
    "batch size": "batch_size",
    "workers": "workers",
    "prefetch factor": "prefetch_factor",
    "persistent workers": "persistent_workers",
    "pinned memory": "pin_memory",
    "dataset": "dataset",
}
_MODEL = {
    "model": "root",
    "parameters": "parameters",
    "model dtype": "dtype",
    "device": "device",
    "compiled": "compiled",
    "shape of a sample": "sample",
}


def settings(a: Measurement | None, b: Measurement | None) -> list[ChangedFact]:
    """Samples a step, and the settings of the data loader and the model, where both runs know them."""
    if a is None or b is None:
        return []
    loaders, models = (a.loader, b.loader), (a.model, b.model)
    differences = _samples(a.samples_per_step, b.samples_per_step)
    for (first, second), attributes in ((loaders, _LOADER), (models, _MODEL)):
        if first is not None and second is not None:
            pairs = {name: (getattr(first, field), getattr(second, field)) for name, field in attributes.items()}
            differences += [
                ChangedFact("settings", name, _text(x), _text(y))
                for name, (x, y) in pairs.items()
                if x != y and "" not in (x, y)
            ]
    return differences


def _samples(a: float | None, b: float | None) -> list[ChangedFact]:
    """The last batch of an epoch may hold fewer, so the means of two runs differ a little."""
    if a is None or b is None or abs(a - b) <= SAMPLES_TOLERANCE * max(a, b):
        return []
    return [ChangedFact("settings", SAMPLES, f"{a:.4g}", f"{b:.4g}")]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else str(value)


def _command(a: Archive, b: Archive) -> list[ChangedFact]:
    first, second = (shlex.join(archive.report.run.command) for archive in (a, b))
    return [ChangedFact("command", "command", first, second)] if first != second else []


def _code(a: Archive, b: Archive) -> list[ChangedFact]:
    first, second = (code_of(archive) for archive in (a, b))
    if first == second or not (first[0] and second[0]):
        return []
    return [ChangedFact("code", "git revision", *(_short(code) for code in (first, second)))]


def code_of(archive: Archive) -> tuple[str, str]:
    """The commit and what stands for the uncommitted changes; empty where they are not known, or there are none."""
    environment = archive.report.run.environment
    return str(environment.get("git_revision") or ""), str(environment.get("git_changes") or "")


def _short(code: tuple[str, str]) -> str:
    commit, changes = code
    return commit[:_CODE_HEX] + (f" with uncommitted changes ({changes[:4]})" if changes else "")
