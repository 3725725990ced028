"""What-if without a question: what the usual changes would bring; and what a prediction takes for granted."""

from __future__ import annotations

from collections import defaultdict

from unstall.model import thresholds
from unstall.model.changes import ChangeError, Changes
from unstall.model.function_shares import DATA, Key
from unstall.model.pipeline_model import MODEL, Pipeline
from unstall.model.predict import predict
from unstall.records.what_if import WhatIf


def survey(pipeline: Pipeline) -> list[WhatIf]:
    """What the usual settings would bring, and each large component at half its time; the largest gain first.

    Of what gains alike, settings come before components.
    """
    answers = []
    enough = 1.0
    for changes in [*_settings(pipeline), *_components(pipeline)]:
        try:
            answer = predict(pipeline, changes)
        except ChangeError:
            continue  # no place for it in this program
        if changes.workers is not None and changes.workers > pipeline.layout.workers:
            if answer.speedup < enough * thresholds.WORTH_A_WORKER:
                continue  # fewer workers do as much
            enough = answer.speedup
        answers.append(answer)
    return sorted(answers, key=lambda answer: -round(answer.speedup, 2))


def _settings(pipeline: Pipeline) -> list[Changes]:
    layout = pipeline.layout
    changes = []
    if pipeline.has_loader:
        most = int(layout.cores) + 2
        counts = {0, 1, 2, 4, 8, 16, max(1, layout.workers // 2), 2 * layout.workers, most}
        changes += [Changes(workers=count) for count in sorted(counts) if count <= most and count != layout.workers]
        if layout.workers:
            changes += [Changes(prefetch=2 * layout.prefetch), Changes(in_order=not layout.in_order)]
        if layout.workers and layout.epoch and not pipeline.persistent_workers:
            changes.append(Changes(persistent=True))
    if not pipeline.on_device and pipeline.phase_s("forward"):
        changes += [Changes(threads=count) for count in {1, int(layout.cores)} if count not in (0, pipeline.threads)]
    if _matters(pipeline, "callback"):
        changes.append(Changes(aside=frozenset({"callback"})))
    return changes


def _components(pipeline: Pipeline) -> list[Changes]:
    names = [DATA] if pipeline.has_loader else []
    names += [name for name in pipeline.phases if name not in MODEL and _matters(pipeline, name)]
    names += [".".join(key[-2:]) for key in _functions(pipeline)]
    return [Changes(scales={name: 0.5}) for name in names]


def _matters(pipeline: Pipeline, phase: str) -> bool:
    return pipeline.phase_s(phase) >= thresholds.LEAST_SHARE * pipeline.measured_s


def _functions(pipeline: Pipeline) -> list[Key]:
    """The functions of the user's with the most samples where batches are made, those that only call them left out."""
    stacks = pipeline.function_shares.stacks.get(DATA, ())
    total = sum(count for _, count in stacks)
    counts: defaultdict[Key, float] = defaultdict(float)
    for functions, count in stacks:
        for key in functions & pipeline.function_shares.own:
            counts[key] += count
    large = [
        key
        for key, count in counts.items()
        if thresholds.LEAST_FUNCTION * total <= count <= thresholds.CALLS_OTHERS * total
    ]
    return sorted(large, key=lambda key: -counts[key])[: thresholds.MOST_FUNCTIONS]


def assumptions(pipeline: Pipeline, changes: Changes) -> list[str]:
    """What the prediction takes for granted, one line each: what a recording cannot tell."""
    lines = []
    if changes.threads is not None and changes.threads > pipeline.threads == 1:
        lines.append("how much of the model more threads could share out is not in a recording with one thread")
    if changes.aside:
        lines.append("async: what is handed to the other thread must not be changed by the next step")
    if changes.workers and not pipeline.layout.workers:
        lines.append("no worker was recorded: the cost of handing over a batch is a figure from another machine")
    if pipeline.layout.background > thresholds.BUSY_NEIGHBOURS * pipeline.layout.cores:
        lines.append(f"other programs took {pipeline.layout.background:.1f} cores in the recording, and here too")
    return lines
