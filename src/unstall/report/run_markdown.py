"""The report as GitHub Markdown, for a comment on a pull request."""

from __future__ import annotations

import math
from collections.abc import Iterator

from unstall.records.report import Report
from unstall.report import facts, study, wording
from unstall.report.markdown import bullets, escape, fenced, table
from unstall.text import units
from unstall.text.sanitize import plain


def render(report: Report) -> str:
    """The verdict in view, the figures behind a fold; strings of the program cannot add markup."""
    return "\n".join([*_summary(report), "", *_details(report)]) + "\n"


def _summary(report: Report) -> Iterator[str]:
    yield f"### unstall {report.kind}"
    yield ""
    yield f"**{escape(wording.headline(report))}**"
    yield from _culprit(report)
    yield from _phases(report)
    yield from _experiments(report)
    yield from _remedies(report)
    headroom = wording.headroom_line(report)
    if headroom:
        yield from ("", f"**Headroom**: {escape(headroom)}")
    yield from bullets("Evidence", report.verdict.evidence)
    yield from bullets("Advice", report.verdict.advice)
    runner_up = wording.runner_up_line(report)
    if runner_up:
        yield from ("", f"**Runner-up**: {escape(runner_up)}")
    why, command = wording.next_command(report)
    yield from ("", f"**Next**: {escape(why)}")
    if command is not None:
        yield from ("", *fenced(plain(command), "sh"))


def _culprit(report: Report) -> Iterator[str]:
    culprit = report.verdict.culprit
    if culprit is None:
        return
    share = wording.culprit_share(report.verdict)
    blamed = escape(" at ".join(wording.name_and_place(culprit)))
    via = f", in the call of {escape(culprit.via)}" if culprit.via else ""
    yield from ("", f"**Culprit**: {blamed}" + (f" ({share})" if share else "") + via)
    if culprit.code:
        yield from ("", *fenced(plain(culprit.code), "python"))


def _phases(report: Report) -> Iterator[str]:
    shown, folded = facts.phases(report)
    rows: list[tuple[str, ...]] = [
        (
            phase.name,
            units.percent(phase.share),
            units.seconds(phase.mean_s),
            facts.phase_note(phase),
        )
        for phase in shown
    ]
    if folded:
        share = units.percent(sum(phase.share for phase in folded))
        mean = units.seconds(sum(phase.mean_s for phase in folded))
        rows.append(("the rest", share, mean, ", ".join(phase.name for phase in folded)))
    yield from table(("phase", "share", "a step", ""), rows)


def _experiments(report: Report) -> Iterator[str]:
    """Ceilings, the trials in their order, and what they say together; of a study only."""
    if report.study is None:
        return
    rows: list[tuple[str, ...]] = [
        (one.component, units.number(one.steps_per_s), _gap(one.gap), one.known_by)
        for one in sorted(report.ceilings, key=lambda one: -one.steps_per_s)
    ]
    if rows:
        rows.append(("as it is", units.number(study.speed(report) or math.nan), "", "measured"))
    yield from table(("ceiling", "steps/s", "gap", "known by"), rows)
    yield from table(
        ("tried, in this order", "times as fast", "95 %", "predicted", "elasticity"),
        [
            (
                one.name,
                study.result(one),
                study.between(one.ci95),
                units.factor(one.predicted_ratio) if units.known(one.predicted_ratio) else "",
                units.number(one.elasticity) if units.known(one.elasticity) else "",
            )
            for one in report.experiments
        ],
    )
    yield ""
    yield from (f"- {label}: {escape(told)}" for label, told in study.facts(report.study))
    yield from bullets("Once the first bottleneck is gone", report.study.deeper)
    yield from bullets("Where observation and experiment disagree", report.study.disagreements)
    yield from bullets("Without a result", study.failures(report.study))
    yield from bullets("Not tried, the budget was spent", report.study.untried)


def _gap(gap: float | None) -> str:
    return units.percent(gap) if units.known(gap) else ""


def _remedies(report: Report) -> Iterator[str]:
    yield from table(
        ("remedy", "kept", "exactness", "speed-up", "95 %", "why not"),
        [
            (
                one.name,
                "yes" if one.kept else "no",
                one.exactness,
                units.factor(one.speedup) if units.known(one.speedup) else "",
                study.between(one.ci95),
                one.why_not or "",
            )
            for one in report.remedies
        ],
    )


def _details(report: Report) -> Iterator[str]:
    yield from ("<details><summary>Speed, machine and run</summary>", "")
    lists = (
        ("Step", facts.step_times(report)),
        ("Speed", facts.throughput(report)),
        ("Machine", facts.utilization(report)),
        ("Run", facts.run(report)),
        ("Gaps", facts.startup(report)),
    )
    for label, phrases in lists:
        if phrases:
            yield f"- {label}: {escape(' · '.join(phrases))}"
    yield from bullets("Notes", report.run.notes)
    yield from _tables(report)
    if report.patch:
        yield from ("", "**Patch**", "", *fenced(report.patch.rstrip("\n"), "diff"))
    yield from ("", "</details>")


def _tables(report: Report) -> Iterator[str]:
    yield from table(
        ("hot line", "at", "share", "of", "phase"),
        [
            (h.function, wording.location(h.file, h.line), units.percent(h.share), h.where, h.phase)
            for h in report.hotspots
        ],
    )
    yield from table(
        ("module", "type", "calls a step", "own", "with children"),
        [
            (
                m.name or "(root)",
                m.type,
                units.number(m.calls_per_step),
                units.seconds(m.self_s),
                units.seconds(m.forward_s),
            )
            for m in sorted(report.modules, key=lambda module: -module.self_s)
        ],
    )
    yield from table(
        ("span", "count", "mean", "total"),
        [
            (s.name, f"{s.count:,}", units.seconds(s.mean_s), units.seconds(s.total_s))
            for s in sorted(report.spans, key=lambda span: -span.total_s)
        ],
    )
