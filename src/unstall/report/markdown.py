"""The report as GitHub Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from unstall.records import Report
from unstall.report import facts, units, wording
from unstall.report.plain import plain

_INLINE = re.compile(r"([\\`*_\[\]|~$])")
_BLOCK = re.compile(r"^(\d*)(#|[-+.)](?=[\s-]|$))")  # headings, list items, rules
_MENTION = re.compile(r"@(?=\w)")


def render(report: Report) -> str:
    """The verdict in view, the figures behind a fold; strings of the program cannot add markup."""
    return "\n".join([*_summary(report), "", *_details(report)]) + "\n"


def escape(text: str) -> str:
    """``text`` as literal characters: no markup, no HTML, and nobody notified by an @ sign."""
    text = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _INLINE.sub(r"\\\1", text)
    text = _MENTION.sub("@\u200b", text)
    return _BLOCK.sub(r"\1\\\2", text)


def _summary(report: Report) -> Iterator[str]:
    yield f"### unstall {report.kind}"
    yield ""
    yield f"**{escape(wording.headline(report))}**"
    yield from _culprit(report)
    yield from _phases(report)
    headroom = wording.headroom_line(report)
    if headroom:
        yield from ("", f"**Headroom**: {escape(headroom)}")
    yield from _bullets("Evidence", report.verdict.evidence)
    yield from _bullets("Advice", report.verdict.advice)
    runner_up = wording.runner_up_line(report)
    if runner_up:
        yield from ("", f"**Runner-up**: {escape(runner_up)}")
    why, command = wording.next_command(report)
    yield from ("", f"**Next**: {escape(why)}")
    if command is not None:
        yield from ("", *_fenced(command, "sh"))


def _culprit(report: Report) -> Iterator[str]:
    culprit = report.verdict.culprit
    if culprit is None:
        return
    share = wording.culprit_share(report.verdict)
    name = escape(wording.culprit_name(culprit))
    place = escape(wording.location(culprit.file, culprit.line))
    via = f", in the call of {escape(culprit.via)}" if culprit.via else ""
    yield from ("", f"**Culprit**: {name} at {place}" + (f" ({share})" if share else "") + via)
    if culprit.code:
        yield from ("", *_fenced(culprit.code, "python"))


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
    yield from _table(("phase", "share", "a step", ""), rows)


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
    yield from _bullets("Notes", report.run.notes)
    yield from _tables(report)
    yield from ("", "</details>")


def _tables(report: Report) -> Iterator[str]:
    yield from _table(
        ("hot line", "at", "share", "of", "phase"),
        [
            (h.function, wording.location(h.file, h.line), units.percent(h.share), h.where, h.phase)
            for h in report.hotspots
        ],
    )
    yield from _table(
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
    yield from _table(
        ("span", "count", "mean", "total"),
        [
            (s.name, f"{s.count:,}", units.seconds(s.mean_s), units.seconds(s.total_s))
            for s in sorted(report.spans, key=lambda span: -span.total_s)
        ],
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield f"| {' | '.join(escape(cell) for cell in row)} |"


def _bullets(label: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from ("", f"**{label}**", "")
        yield from (f"- {escape(item)}" for item in items)


def _fenced(code: str, language: str) -> Iterator[str]:
    """A code block whose fence is longer than any run of backticks in it."""
    code = plain(code)
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", code)), default=0))
    yield from (fence + language, code, fence)
