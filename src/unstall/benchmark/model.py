"""The model of the main loop: what it is, its FLOPs a step, and the forward time of each of its modules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unstall.benchmark.boundaries import of_models, primary
from unstall.benchmark.reader import ProcessRecording, Spans
from unstall.benchmark.steps import Bools, Loop, main_spans
from unstall.child.layout import MODULE, NOGRAD
from unstall.child.seams.modules import BATCHES, FORWARD
from unstall.child.seams.optimizer import STEP
from unstall.records.model import DroppedGradients, ModelMeasurement, ModuleMeasurement, OperatorLine, Recomputation
from unstall.records.observations import Frame
from unstall.records.run import Generation


def measure(
    main: ProcessRecording,
    loop: Loop,
    chosen: Bools,
    *,
    peak_flops: float | None,
    threads: int,
    generated: Generation | None,
) -> ModelMeasurement:
    """The main model of the measured steps.

    Args:
        main: the process that the loop is in.
        loop: its steps.
        chosen: which of them are measured.
        peak_flops: FLOP/s of this machine, single precision.
        threads: that torch computes with; 0 where that is not known.
        generated: the mean request, where a step is one: says how many sequences a call is for.
    """
    spans = main_spans(main)
    forwards = _forwards(spans, main)
    arithmetic = _arithmetic(main, forwards, loop, chosen)
    if not len(forwards):
        return ModelMeasurement(peak_flops=peak_flops, threads=threads, **arithmetic)
    root = primary(of_models(main, forwards))
    address = int(root["arg"][0])  # of several that are trained in turn, that which was looked at
    fact = next((fact for fact in main.facts.get("root", []) if fact["id"] == address), {})
    parts = next((fact for fact in module_tables(main) if fact["root"] == address), {})
    batch_size = round(generated.sequences) if generated is not None else None
    batches = [fact for fact in main.facts.get("batch", []) if fact["root"] == address][-BATCHES:]
    sizes = [fact["size"] for fact in batches if fact["size"]]
    shapes = {tuple(fact["sample"]) for fact in batches if fact["size"]}
    training = root[root["flags"] & NOGRAD == 0] if loop.validation_calls.any() else root
    return ModelMeasurement(
        root=fact.get("type", ""),
        file=fact.get("file", ""),
        line=int(fact.get("line", 0)),
        dtype=fact.get("dtype", ""),
        device=fact.get("device", ""),
        parameters=int(fact.get("parameters", 0)),
        gradients=int(parts.get("gradients", 0)),
        updated=int(parts.get("updated", 0)),
        idle_parts=tuple(parts.get("idle", ())),
        dropped=_dropped(main),
        padding=_mean(batches, "padding"),
        spare=_mean(batches, "spare"),
        threads=threads,
        batch_size=int(np.median(sizes)) if sizes else batch_size,
        sample="×".join(str(length) for length in shapes.pop()) if len(shapes) == 1 else "",
        forwards=_count(training, loop, chosen),
        peak_flops=peak_flops,
        **arithmetic,
    )


def _mean(facts: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.mean([fact.get(name, 0.0) for fact in facts])) if facts else 0.0


def _forwards(spans: Spans, main: ProcessRecording) -> Spans:
    """The outermost calls of models."""
    return spans[(spans["name"] == main.ids.get(FORWARD.event, -1)) & (spans["flags"] & MODULE == 0)]


def _cycles_per_step(
    main: ProcessRecording, fact: Mapping[str, Any], forwards: Spans, loop: Loop, chosen: Bools
) -> float:
    """How many of the cycles that operators were counted in are in a measured step, mean."""
    each = forwards if fact["per"] == FORWARD.event else main.named(STEP.event, main_only=False)
    return _count(primary(each), loop, chosen) if len(each) else 0.0


def _of_training(looks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those of the training, where a loop was looked at both before it trained and then; else all."""
    return [look for look in looks if look.get("per") == STEP.event] or list(looks)


def _dropped(main: ProcessRecording) -> DroppedGradients | None:
    fact = next(iter(main.facts.get("dropped", [])[-1:]), None)
    if fact is None or not fact["backward"]:
        return None
    share = min(1.0, fact["seconds"] / fact["backward"])
    return DroppedGradients(frames_of(fact["path"]), fact["model"], share, never=bool(fact.get("never")))


def frames_of(path: Sequence[tuple[str, str, int]]) -> tuple[Frame, ...]:
    """The frames of (file, function, line), in the same order."""
    return tuple(Frame(function, file, int(line)) for file, function, line in path)


def _arithmetic(main: ProcessRecording, forwards: Spans, loop: Loop, chosen: Bools) -> dict[str, Any]:
    """The fields of the measurement that operators were counted for, a step; none where they were not."""
    counted = _counted(main)
    is_compiled = any(fact.get("compiled") for fact in main.facts.get("flops", []))
    fields: dict[str, Any] = {"compiled": True} if is_compiled else {}
    fields["anomaly"] = any(fact.get("anomaly") for fact in counted)
    if not counted:
        return fields
    training = next((fact for fact in counted if fact["per"] == STEP.event), None)
    sums: dict[str, float] = defaultdict(float)
    for fact in counted:
        per_step = _cycles_per_step(main, fact, forwards, loop, chosen) / fact.get("cycles", 1)
        if training is not None and fact is not training:
            per_step = _uncounted_calls(main, training, forwards, loop, chosen) / fact.get("cycles", 1)
        for name in ("flops", "ops", "written", "known", "unknown"):
            sums[name] += fact.get(name, 0) * per_step
    heavy = sums["known"] + sums["unknown"]
    return fields | {
        "flops": sums["flops"],
        "ops": sums["ops"],
        "written_bytes": sums["written"],
        "flops_coverage": sums["known"] / heavy if heavy else None,
    }


def _counted(main: ProcessRecording) -> list[Mapping[str, Any]]:
    """The last look at operators for each seam, but for those at compiled functions, which show none."""
    return [*{fact["per"]: fact for fact in main.facts.get("flops", []) if not fact.get("compiled")}.values()]


def operator_looks(main: ProcessRecording) -> list[Mapping[str, Any]]:
    """The early cycles in which operators were counted and timed: those of the training, where there are such."""
    return _of_training(_counted(main))


def operators(
    main: ProcessRecording, loop: Loop, chosen: Bools, device: str
) -> tuple[list[OperatorLine], list[OperatorLine]]:
    """The program's lines whose operators have a gradient, or compute again, and the others that take time.

    None for a model on a ``device``.
    """
    lines: list[OperatorLine] = []
    others: list[OperatorLine] = []
    if "cuda" in device:
        return lines, others
    forwards = _forwards(main_spans(main), main)
    for fact in operator_looks(main):
        per_step = _cycles_per_step(main, fact, forwards, loop, chosen) / fact.get("cycles", 1)
        lines += [_operator_line(each, per_step) for each in fact.get("lines", ())]
        others += [_operator_line(each, per_step) for each in fact.get("other_lines", ())]
    return lines, others


def _operator_line(told: Mapping[str, Any], per_step: float) -> OperatorLine:
    return OperatorLine(
        frames=frames_of(told["path"]),
        forward_s=told["forward"],
        backward_s=told.get("backward", 0.0),
        node=told.get("node", ""),
        again_s=told.get("again", 0.0),
        calls=told.get("calls", 0),
        operator=told.get("operator", ""),
        per_step=per_step,
    )


def recomputation(main: ProcessRecording, loop: Loop, chosen: Bools, device: str) -> Recomputation | None:
    """What is computed again, scaled to a measured step; None for a model on a ``device``, or where nothing is."""
    fact = next((fact for fact in operator_looks(main) if fact.get("recomputed")), None)
    if fact is None or "cuda" in device:
        return None
    again = fact["recomputed"]
    per_step = _cycles_per_step(main, fact, _forwards(main_spans(main), main), loop, chosen)
    return Recomputation(
        frames=frames_of(again["path"]),
        there=again["there"],
        seconds=again["again"] * per_step,
        operators=again["operators"] * per_step,
        backward_s=again["backward"] * per_step,
        share=min(1.0, (again["again"] + again["backward"]) / again["of"]),
        recurring=again["recurring"] / again["computed"] if again["computed"] else 0.0,
    )


def _uncounted_calls(
    main: ProcessRecording, training: Mapping[str, Any], forwards: Spans, loop: Loop, chosen: Bools
) -> float:
    """Calls without gradients in a measured step, less those that are in the cycles of the training already.

    Fewer than none, where the cycles that were counted hold more of them than others do.
    """
    calls = _count(forwards[forwards["flags"] & NOGRAD != 0], loop, chosen)
    cycles = _cycles_per_step(main, training, forwards, loop, chosen) / training.get("cycles", 1)
    return calls - training.get("without_gradients", 0) * cycles


def _count(spans: Spans, loop: Loop, chosen: Bools) -> float:
    """How many of these spans begin in a measured step, mean."""
    index = loop.step_of(spans)
    return float(chosen[index[index >= 0]].sum() / chosen.sum())


def modules_window(main: ProcessRecording) -> Mapping[str, Any] | None:
    """The early cycles in which all module calls are recorded: ``marks`` between them, and ``per`` which seam."""
    windows = [fact for fact in main.facts.get("window", []) if fact.get("what") == "modules"]
    return next(reversed(_of_training(windows)), None)


def module_tables(main: ProcessRecording) -> list[Mapping[str, Any]]:
    """The models of that window, each with its modules."""
    return [*{table["root"]: table for table in _of_training(main.facts.get("modules", []))}.values()]


def modules(main: ProcessRecording) -> list[ModuleMeasurement]:
    """Forward time of each module a cycle: the median of the early cycles in which all module calls are recorded."""
    window = modules_window(main)
    if window is None or len(window["marks"]) < 2:
        return []
    by_cycle = _module_cycles(main, window["marks"])
    measured = []
    for table in module_tables(main):
        names = [row["name"] for row in table["modules"]]
        for row in table["modules"]:
            per_cycle = by_cycle.get(int(row["id"]))
            if per_cycle is None:
                continue
            calls, total, own = np.median(per_cycle, axis=0)
            prefix = f"{row['name']}." if row["name"] else ""
            children = sum(name != row["name"] and name.startswith(prefix) for name in names)
            measured.append(
                ModuleMeasurement(
                    row["name"],
                    row["type"],
                    row["file"],
                    int(row["line"]),
                    float(calls),
                    float(total),
                    float(own),
                    children,
                    row.get("repr", ""),
                )
            )
    return sorted(measured, key=lambda module: -module.self_s)


def _module_cycles(main: ProcessRecording, marks: list[float]) -> dict[int, npt.NDArray[np.float64]]:
    """By the module's address: calls, seconds, and own seconds in each cycle, shape (cycles, 3)."""
    spans = main.spans[main.spans["name"] == main.ids.get(FORWARD.event, -1)]
    cycle = np.searchsorted(marks, spans["start"] / 1e9, side="right") - 1
    inside = (cycle >= 0) & (cycle < len(marks) - 1)
    spans, cycle = spans[inside], cycle[inside]
    measured = {}
    for address in np.unique(spans["arg"]):
        own = spans["arg"] == address
        weights = (np.ones(own.sum()), spans["dur"][own] / 1e9, spans["self"][own] / 1e9)
        columns = [np.bincount(cycle[own], weights=weight, minlength=len(marks) - 1) for weight in weights]
        measured[int(address)] = np.stack(columns, axis=1).astype(np.float64)
    return measured
