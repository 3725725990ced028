"""What the tools answer: typed, small, with what to do next; the whole answer is in the resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from unstall.agents.calls import FILES, ToolCall
from unstall.agents.shapes import (
    Answer,
    Bottleneck,
    CompareAnswer,
    DataAnswer,
    ExperimentRow,
    Gain,
    HistoryAnswer,
    HistoryRow,
    OptimizeAnswer,
    Prediction,
    ProveAnswer,
    ReportAnswer,
    Resource,
    SimplifyAnswer,
    StageRow,
    Tried,
    WhatIfAnswer,
)
from unstall.agents.thresholds import ANSWER_BYTES, TEXT_CHARACTERS
from unstall.records.comparison import Comparison, Entry
from unstall.records.report import Finding, Report
from unstall.records.speedup import Speedup
from unstall.records.vocabulary import HEALTHY
from unstall.records.what_if import DataReport, WhatIfReport
from unstall.report import prove_view, wording
from unstall.text.sanitize import sanitize_line, shorten

A = TypeVar("A", bound=Answer)


def run(call: ToolCall) -> ReportAnswer:
    """The answer of ``unstall run``, ``report`` and ``trace``."""
    report = Report.from_json(call.answer)
    return _fitted(ReportAnswer(**_report_fields(call, report), next=_after_run(report)))


def simplify(call: ToolCall) -> SimplifyAnswer:
    """The answer of ``unstall simplify``."""
    report = Report.from_json(call.answer)
    experiments = [
        ExperimentRow(
            name=_text(tried.name), speedup=tried.ratio, low=tried.ci95[0], high=tried.ci95[1],
            conclusive=tried.conclusive,
        )
        for tried in sorted(report.experiments, key=lambda tried: -tried.ratio)
    ]  # fmt: skip
    next = ["Change what has the highest ceiling, or call optimize with the same program: it tries the known remedies."]
    return _fitted(SimplifyAnswer(**_report_fields(call, report), experiments=experiments, next=next))


def optimize(call: ToolCall) -> OptimizeAnswer:
    """The answer of ``unstall optimize``."""
    report = Report.from_json(call.answer)
    tried = [
        Tried(
            change=_text(remedy.name), status=remedy.status.value if remedy.status else "", speedup=remedy.speedup,
            sameness=remedy.sameness, why_not=_text(remedy.why_not) if remedy.why_not else None,
        )
        for remedy in sorted(report.remedies, key=lambda remedy: not remedy.kept)
    ]  # fmt: skip
    next = ["Read changes.patch, apply it with git apply, then call run and compare."]
    if not report.patch:
        next = ["No change was proven faster: the culprit needs a rewrite by hand. Judge that with optimize again."]
    return _fitted(
        OptimizeAnswer(
            **_report_fields(call, report), total_speedup=report.total_speedup, total_ci95=report.total_ci95,
            sameness=report.sameness, changes_files=bool(report.patch), tried=tried, next=next,
        )
    )  # fmt: skip


_AFTER_PROOF = {
    "proven": "Keep the change, and say the ratio with its interval. Then call run again: another bottleneck leads.",
    "different": "Undo what makes the first difference, then call prove again.",
    "not-faster": "Drop the change: it brings no speed. Call run to see what leads, or simplify to know each ceiling.",
    "inconclusive": "Call prove again with a larger budget_s, or with a program that ends sooner.",
    "refused": "Take out the part that changes what is measured; a change must not touch clocks, counts or unstall.",
}


def prove(call: ToolCall) -> ProveAnswer:
    """The answer of ``unstall prove``."""
    report = Report.from_json(call.answer)
    proof = report.proof
    assert proof is not None
    ratio, difference = proof.ratio, proof.first_difference
    return _fitted(
        ProveAnswer(
            headline=_text(prove_view.headline(proof)), next=[_AFTER_PROOF[proof.verdict]],
            notes=_texts(report.run.notes), resources=_resources(call), verdict=proof.verdict, sameness=proof.sameness,
            ratio=Gain(value=ratio.value, low=ratio.low, high=ratio.high, known_by="measured") if ratio else None,
            first_difference=_text(str(difference)) if difference is not None else None,
            known_by=_texts(proof.known_by),
        )
    )  # fmt: skip


def data(call: ToolCall) -> DataAnswer:
    """The answer of ``unstall data``."""
    report = msgspec.json.decode(call.answer, type=DataReport)
    stages = [
        StageRow(name=_text(stage.name), seconds=stage.seconds, share=stage.share, place=_place(stage.file, stage.line))
        for stage in sorted(report.stages, key=lambda stage: -stage.seconds)
    ]
    next = ["Make the slowest stage cheaper, then call data again; what_if predicts other numbers of workers."]
    return _fitted(
        DataAnswer(
            headline=_text(report.conclusion), next=next, notes=_texts(report.notes), resources=_resources(call),
            ceiling_items_per_s=report.ceiling_items_per_s, model_items_per_s=report.model_items_per_s,
            items_per_s_by_workers={str(rate.workers): rate.items_per_s for rate in report.rates}, stages=stages,
        )
    )  # fmt: skip


def what_if(call: ToolCall) -> WhatIfAnswer:
    """The answer of ``unstall what-if``."""
    report = msgspec.json.decode(call.answer, type=WhatIfReport)
    best = max(report.answers, key=lambda answer: answer.speedup, default=None)
    headline = f"{best.changes}: {best.speedup:.2f}× as fast, predicted" if best else "there is nothing to predict"
    predictions = [
        Prediction(
            changes=_text(answer.changes), speedup=answer.speedup, low=answer.speedup_low, high=answer.speedup_high,
            bottleneck=answer.bottleneck,
        )
        for answer in report.answers
    ]  # fmt: skip
    next = ["A prediction is no measurement: make the change, call run, then compare."]
    return _fitted(
        WhatIfAnswer(
            headline=_text(headline), next=next, notes=_texts(report.notes), resources=_resources(call),
            recorded_step_s=report.recorded_step_s, predictions=predictions,
        )
    )  # fmt: skip


def compare(call: ToolCall) -> CompareAnswer:
    """The answer of ``unstall compare``."""
    report = msgspec.json.decode(call.answer, type=Comparison)
    speedup = report.speedup
    figure = f" ({speedup.value:.2f}×)" if speedup else ""
    next = ["Speed is not sameness: two runs say nothing about whether the results are the same."]
    if report.conclusion in ("unknown", "no difference"):
        next = ["Run both versions again, for more steps or on a quieter machine, then compare."]
    return _fitted(
        CompareAnswer(
            headline=f"{report.b.id} against {report.a.id}: {report.conclusion}{figure}", next=next,
            notes=_texts(report.caveats), resources=_resources(call), conclusion=report.conclusion,
            speedup=speedup.value if speedup else None, low=speedup.low if speedup else None,
            high=speedup.high if speedup else None, smallest_detectable=report.smallest_detectable,
            differences=[_text(f"{each.subject} {each.name}: {each.a} → {each.b}") for each in report.differences],
        )
    )  # fmt: skip


def history(call: ToolCall) -> HistoryAnswer:
    """The answer of ``unstall history``."""
    entries = msgspec.json.decode(call.answer, type=list[Entry])
    runs = [
        HistoryRow(
            id=entry.id, kind=entry.kind, started=entry.started, command=_text(" ".join(entry.command)),
            steps_per_s=entry.steps_per_s, verdict=entry.pattern, culprit=entry.culprit, speedup=entry.speedup,
        )
        for entry in reversed(entries)
    ]  # fmt: skip
    next = ["report shows one of them, compare two." if runs else "Call run: there is no run yet."]
    count = f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}"
    return _fitted(HistoryAnswer(headline=count, next=next, resources=_resources(call), runs=runs))


def _report_fields(call: ToolCall, report: Report) -> dict[str, Any]:
    """Those that all answers made of a report have."""
    return {
        "headline": _text(wording.headline(report)),
        "notes": _texts(report.run.notes),
        "resources": _resources(call),
        "run": report.run.id,
        "steps": report.run.steps,
        "steps_per_s": report.throughput.steps_per_s,
        "exit_code": report.run.exit_code,
        "verdict": _bottleneck(report.verdict),
        "others": [_bottleneck(finding) for finding in report.findings if finding != report.verdict],
    }


def _after_run(report: Report) -> list[str]:
    if report.verdict.pattern == HEALTHY:
        return ["Nothing stalls it: stop here, or make the model's own work smaller."]
    next = [
        "simplify with the same program proves the ceiling by experiment, before you spend work on the culprit.",
        "optimize with the same program tries the known remedies and returns a patch with the same results.",
    ]
    return next + ["data measures each stage of the input alone."] * (report.verdict.pattern == "input-bound")


def _bottleneck(finding: Finding) -> Bottleneck:
    return Bottleneck(
        pattern=finding.pattern,
        cause=finding.cause,
        share=finding.share,
        culprit=_text(finding.culprit.label) if finding.culprit else None,
        ceiling=_gain(finding.ceiling),
        expected_gain=_gain(finding.expected_gain),
        advice=_texts(finding.advice[:2]),
    )


def _gain(speedup: Speedup | None) -> Gain | None:
    if speedup is None:
        return None
    return Gain(value=speedup.value, low=speedup.low, high=speedup.high, known_by=speedup.known_by)


def _resources(call: ToolCall) -> list[Resource]:
    return [
        Resource(uri=f"unstall://calls/{call.number}/{name}", path=str(path), holds=FILES[name])
        for name, path in call.files()
    ]


def _place(file: str, line: int) -> str:
    return f"{PurePath(file).name}:{line}" if file else ""


def _text(text: str) -> str:
    """What came from the program may be long, and hold anything."""
    return shorten(sanitize_line(text), int(TEXT_CHARACTERS))


def _texts(texts: Iterable[str]) -> list[str]:
    return [_text(text) for text in texts]


def _fitted(answer: A) -> A:
    """The answer with as many rows as there is room for: the longest list is cut first, the first row stays."""
    while len(answer.model_dump_json(indent=2).encode()) > ANSWER_BYTES:
        lists = [(name, rows) for name, rows in _lists(answer) if len(rows) > 1]
        if not lists:
            return answer
        name, rows = max(lists, key=lambda item: len(str(item[1])))
        answer = answer.model_copy(update={name: rows[:-1]})
    return answer


_NEVER_CUT = ("next", "resources")


def _lists(answer: Answer) -> Iterable[tuple[str, Sequence[object]]]:
    return [(name, rows) for name, rows in answer if isinstance(rows, list) and name not in _NEVER_CUT]
