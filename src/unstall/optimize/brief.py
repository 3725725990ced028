"""What an agent is told before it changes a program: the bottleneck, its ceiling, and what earlier changes came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unstall.diagnose.patterns.base import worth
from unstall.optimize.diagnosis import Diagnosis
from unstall.optimize.proposal import Attempt
from unstall.records.remedies import RemedyStatus
from unstall.records.report import Finding
from unstall.text.sanitize import sanitize_line

_MOST_FINDINGS, _MOST_LINES, _MOST_TRIED = 3, 8, 20
_RULES = """\
Make one change that makes a step of this program faster, in the Python files of this folder, then end. Several files
may change, and files may be added; none may be removed, and what is no Python file does not count. The folder is a
copy: nothing here reaches the original, and you may run the program in it.

The change is kept if it is faster for certain, in fresh runs beside the program as it is now, and computes the same:
every loss, output, gradient and weight of its steps, bit for bit or but for rounding. Do the same work: the same
steps, samples, order, batches, validation, precision and files. Leave clocks, counts and seeds alone.
"""


def brief(command: Sequence[str], state: Diagnosis, attempts: Sequence[Attempt], remarks: Iterable[str]) -> str:
    """As Markdown.

    Args:
        command: the program's command line.
        state: the program as it is now, with all that was kept.
        attempts: what was tried so far.
        remarks: on what the agent did when it was asked before.
    """
    findings = state.report.findings[:_MOST_FINDINGS]
    tried = [attempt for attempt in attempts if attempt.speedup or attempt.status is not RemedyStatus.UNTRIED]
    sections = [
        ("Make this program faster", [_RULES]),
        ("The program", [f"`{sanitize_line(' '.join(command))}`, {state.step_s * 1e3:.3g} ms a step ({state.kind})"]),
        ("What stalls it", [line for finding in findings for line in _finding(finding)]),
        ("Where the time goes", _lines(state)),
        ("What was tried", [_attempt(attempt) for attempt in tried[-_MOST_TRIED:]]),
        ("Your last change", [f"- {sanitize_line(remark)}" for remark in remarks]),
    ]
    return "\n".join(f"# {title}\n\n" + "\n".join(lines) + "\n" for title, lines in sections if lines)


def ceiling(state: Diagnosis) -> float:
    """How many times faster the step would be at most without the worst bottleneck; 1 where none is known."""
    return max((worth(finding) for finding in state.report.findings), default=1.0)


def _finding(finding: Finding) -> list[str]:
    cause = f" ({finding.cause})" if finding.cause else ""
    lines = [f"- **{finding.pattern}**{cause}: {sanitize_line(finding.summary or 'see the evidence')}"]
    if finding.culprit is not None:
        lines.append(f"  - culprit: {sanitize_line(finding.culprit.label)}: `{sanitize_line(finding.culprit.code)}`")
    if worth(finding) > 1:
        lines.append(f"  - perhaps {worth(finding):.2f}× as fast once it is cured ({finding.headroom_known_by})")
    return lines + [f"  - {sanitize_line(line)}" for line in (*finding.evidence[:3], *finding.advice[:2])]


def _lines(state: Diagnosis) -> list[str]:
    return [
        f"- {sanitize_line(spot.function)} {sanitize_line(spot.file)}:{spot.line}: "
        f"{spot.share:.0%} of the {spot.where} process"
        for spot in state.report.hotspots[:_MOST_LINES]
    ]


def _attempt(attempt: Attempt) -> str:
    record = attempt.record()
    gain = f", {record.speedup:.2f}×" if record.speedup else ""
    reason = f": {sanitize_line(record.why_not)}" if record.why_not else ""
    return f"- {sanitize_line(record.name)}: {attempt.status.value}{gain}{reason}"
