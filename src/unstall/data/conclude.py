"""From what the program measured of its data pipeline to a report with one sentence on top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unstall.data import thresholds
from unstall.data.examine import PipelineFacts
from unstall.records.what_if import DataRate, DataReport, DataStage
from unstall.text import units

if TYPE_CHECKING:
    from unstall.records.archive import Archive


_AFTER = ("collate", "pin", "transfer")
"""What happens to the samples of a batch, in this order."""


def conclude(words: list[str], facts: PipelineFacts, *, model_items_per_s: float | None) -> DataReport:
    """The report. ``model_items_per_s``: what the model would take if data were free, where a run tells."""
    stages = _stages(facts, model_items_per_s)
    rates = sorted((DataRate(**rate) for rate in facts.rates), key=lambda rate: rate.workers)
    measured = [rate for rate in rates if rate.items_per_s]
    ceiling = max((rate.items_per_s or 0.0 for rate in measured), default=None)
    report = DataReport(
        command=words,
        loader=facts.loader,
        stages=stages,
        rates=rates,
        ceiling_items_per_s=ceiling,
        model_items_per_s=model_items_per_s,
        conclusion="",
        first_item_s=float(facts.sample.get("first_s", 0.0)),
        notes=_notes(facts),
    )
    return msgspec.structs.replace(report, conclusion=_sentence(report, measured))


def model_rate(archive: Archive | None) -> float | None:
    """Items a second that the recorded program's model would take without waiting for data; None if not known."""
    from unstall import model

    if archive is None:
        return None
    try:
        pipeline = model.of_archive(archive)
    except model.NotRecorded:
        return None
    free = model.predict(pipeline, model.Changes(scales={"data": 0.0})) if pipeline.has_loader else None
    loader = archive.measurement.loader if archive.measurement else None
    if free is None or loader is None or not free.step_s:
        return None
    return loader.batches_per_step * (loader.batch_size or 1) / free.step_s


def _stages(facts: PipelineFacts, model_items_per_s: float | None) -> list[DataStage]:
    called = [_called(figures) for figures in sorted(facts.stages, key=lambda figures: figures["order"])]
    item = _item(facts, called)
    after = [_timed(name, facts.after[name]) for name in _AFTER if name in facts.after]
    total = item.seconds + sum(stage.seconds for stage in after)
    return [
        msgspec.structs.replace(
            stage,
            share=min(1.0, stage.seconds / total) if total else 0.0,
            cores_needed=stage.cpu_s * model_items_per_s if model_items_per_s is not None else None,
        )
        for stage in [item, *called, *_rest(item, called), *after]
    ]


def _called(figures: dict[str, Any]) -> DataStage:
    """A stage that was seen under the profile hook, and replayed where that is possible."""
    note = "" if figures["replayed"] else str(figures.get("why", ""))
    if figures["calls"] > thresholds.SEVERAL_CALLS:
        note = f"{figures['calls']:.0f} calls a sample" + (f"; {note}" if note else "")
    return DataStage(
        name=figures["name"],
        seconds=figures["taken_s"],
        cpu_s=figures["cpu_s"],
        blocked_s=max(figures["blocked_s"], min(figures["reads_s"], figures["taken_s"])),
        known_by="replayed" if figures["replayed"] else "traced",
        depth=max(0, figures["depth"] - 1),
        file=figures["file"],
        line=figures["line"],
        note=note,
    )


def _timed(name: str, figures: dict[str, Any], depth: int = -1) -> DataStage:
    return DataStage(
        name=name,
        seconds=figures["taken_s"],
        cpu_s=figures["cpu_s"],
        blocked_s=figures["blocked_s"],
        known_by="timed",
        depth=depth,
    )


def _item(facts: PipelineFacts, called: list[DataStage]) -> DataStage:
    item = _timed("one item, read" if facts.loader["iterable"] else "one item", facts.sample)
    reads = sum(stage.blocked_s for stage in called if stage.depth == 0)
    return msgspec.structs.replace(item, blocked_s=min(max(item.blocked_s, reads), item.seconds))


def _rest(item: DataStage, called: list[DataStage]) -> list[DataStage]:
    """What an item takes outside all stages."""
    outer = [stage for stage in called if stage.depth == 0]
    seconds = item.seconds - sum(stage.seconds for stage in outer)
    if not outer or seconds < thresholds.REST * item.seconds:
        return []
    cpu = min(seconds, max(0.0, item.cpu_s - sum(stage.cpu_s for stage in outer)))
    blocked = min(seconds - cpu, max(0.0, item.blocked_s - sum(stage.blocked_s for stage in outer)))
    figures = {"taken_s": seconds, "cpu_s": cpu, "blocked_s": blocked}
    return [_timed("the rest of an item", figures, depth=0)]


def slowest(stages: Sequence[DataStage]) -> DataStage | None:
    """The stage that takes most of an item, the innermost that still holds most of its caller's time."""
    candidates = [stage for stage in stages if stage.depth >= 0 or stage.name in _AFTER]
    candidates = [stage for stage in candidates if stage.file or stage.depth < 0]
    best = max(candidates, key=lambda stage: stage.seconds, default=None)
    if best is None:
        return None
    inner = [
        stage
        for stage in candidates
        if stage.depth > best.depth and stage.seconds >= thresholds.INNERMOST * best.seconds
    ]
    return max(inner, key=lambda stage: stage.depth, default=best)


def _sentence(report: DataReport, measured: list[DataRate]) -> str:
    items = str(report.loader.get("items", "samples"))
    worst = slowest(report.stages)
    blame = ""
    if worst is not None:
        place = f" ({Path(worst.file).name}:{worst.line})" if worst.file else ""
        blame = f"; {worst.name}{place} takes {units.percent(worst.share)} of the time per item"
    if not measured or report.ceiling_items_per_s is None:
        return f"The loader could not be run on its own{blame}."
    enough = next(
        rate for rate in measured if (rate.items_per_s or 0) >= thresholds.ENOUGH * report.ceiling_items_per_s
    )
    ceiling = units.rate(report.ceiling_items_per_s, items)
    current = next((rate for rate in measured if rate.workers == report.loader.get("workers")), None)
    text = f"The data pipeline gives at most {ceiling}, with {_workers(enough.workers)}"
    if (
        current is not None
        and current.items_per_s
        and current.items_per_s < thresholds.ENOUGH * report.ceiling_items_per_s
    ):
        text += f" ({units.rate(current.items_per_s, items)} with {_workers(current.workers)} as it is)"
    if report.model_items_per_s is None:
        return f"{text}{blame}. The model's speed is not known: record it with `unstall run`."
    demand = units.rate(report.model_items_per_s, items)
    if report.ceiling_items_per_s < report.model_items_per_s:
        factor = units.factor(report.model_items_per_s / report.ceiling_items_per_s)
        return f"{text}; the model would take {demand}, {factor} as much{blame}."
    cores = sum(stage.cores_needed or 0.0 for stage in report.stages if stage.depth < 0)
    return (
        f"{text}; the model takes {demand}, for which the data need {units.number(cores)} of the "
        f"{units.number(report.loader['cores'])} cores{blame}."
    )


def _workers(count: int) -> str:
    return "no workers" if count == 0 else f"{count} worker{'s' if count > 1 else ''}"


def _notes(facts: PipelineFacts) -> list[str]:
    notes = []
    first, mean = facts.sample.get("first_s", 0.0), facts.sample.get("taken_s", 0.0)
    if mean and first > thresholds.COLD_ITEM * mean:
        notes.append(f"the first item took {units.seconds(first)}: files were opened, caches were cold")
    if facts.other_cores > thresholds.DISTURBED:
        notes.append(f"other programs took {facts.other_cores:.1f} cores meanwhile, which lowers the rates")
    if facts.loader.get("iterable"):
        notes.append("an iterable dataset: it decides itself whether several workers share the items or repeat them")
    if not facts.loader.get("cuda"):
        notes.append("no CUDA device here: pinning and the copy to it are not measured")
    if not facts.stages:
        notes.append("no stages could be distinguished: making an item calls no function of the program's own")
    return notes
