"""The verdict in plain English: the sentence, the culprit's place, the next command to type."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from unstall.records.report import Caller, Culprit, Finding, LineTime, Report
from unstall.records.vocabulary import HEALTHY, WITHOUT_CULPRIT
from unstall.report import promise
from unstall.report.thresholds import BUSY_CORES, STABLE_STEPS
from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten, shorten_left

_NAME_CELLS = 60


class NextCommand(NamedTuple):
    """What to do next; ``command`` is None when there is nothing to type."""

    why: str
    command: str | None


def headline(report: Report) -> str:
    """The verdict as one sentence; for a run without a step, that there is none and what to do."""
    if report.run.steps == 0:
        return _no_verdict(report)
    verdict = report.verdict
    return f"{subject(verdict)}: {_clause(verdict)}{_tail(verdict)}"


def subject(finding: Finding) -> str:
    """The pattern and its cause: "input-bound (transform)"."""
    return f"{finding.pattern} ({sanitize_line(finding.cause)})" if finding.cause else finding.pattern


def runner_up(report: Report) -> Finding | None:
    """The strongest finding after the verdict, if there is one."""
    others = (f for f in report.findings if f != report.verdict and f.pattern not in WITHOUT_CULPRIT)
    return next(others, None)


def runner_up_line(report: Report) -> str | None:
    """The runner-up in one line: pattern, what it would gain, where."""
    finding = runner_up(report)
    if finding is None:
        return None
    line = ", ".join(part for part in (subject(finding), promise.first(finding)) if part)
    if finding.culprit is None:
        return line
    culprit = finding.culprit
    return f"{line}, in {' at '.join(name_and_place(culprit))}"


def culprit_name(culprit: Culprit) -> str:
    """The function's name; for module-level code, the file and line it stands on."""
    return shorten(sanitize_line(culprit.name), _NAME_CELLS)


def name_and_place(culprit: Culprit) -> list[str]:
    """The function's name, and file and line; one of them where that says all: an operator in a trace has no file.

    Of a library the place says which version: ``pkg/sampling.py:87 (pkg 1.2.1)``.
    """
    name, place = culprit_name(culprit), place_of(culprit)
    says_all = location(culprit.file, culprit.line).endswith(name)
    return [place] if says_all else [name, place] if place else [name]


def place_of(line: LineTime) -> str:
    """File and line, and of a library its version; empty without a file."""
    place = location(line.file, line.line)
    package = shorten(sanitize_line(f"{line.package} {line.version}"), _NAME_CELLS)
    return f"{place} ({package})" if place and package else place


def called_by(line: LineTime) -> str:
    """As ``called by Photos.__getitem__, data.py:31 ← your train, train.py:45``; empty where nothing is known."""
    callers = line.callers if isinstance(line, Culprit) else ()
    names = [_caller(caller) for caller in callers]
    if line.called_by is not None:
        users = _caller(line.called_by)
        names = [*itertools.takewhile(lambda name: name != users, names), f"your {users}"]
    return f"called by {' ← '.join(names)}" if names else ""


def _caller(caller: Caller) -> str:
    named = "" if caller.function.startswith("<") else f"{shorten(sanitize_line(caller.function), _NAME_CELLS)}, "
    return f"{named}{location(caller.file, caller.line)}"


def location(file: str, line: int, cells: int = 1000) -> str:
    """``file:line``, relative to the working directory or to site-packages if it is under one; empty without a file."""
    if not file:
        return ""
    return shorten_left(f"{sanitize_line(_short_path(file))}:{line}", cells)


def culprit_share(finding: Finding) -> str:
    """The culprit's share and whose time it is a share of; empty where time is not the matter."""
    culprit = finding.culprit
    if culprit is None or "untimed" in finding.traits:
        return ""
    if culprit.process == "main":
        owner = "the main process's time"
    elif in_worker(culprit):
        owner = "the loader workers' time"
    else:
        owner = f"the time of {shorten(sanitize_line(culprit.where), 30)}"
    return f"{units.percent(culprit.share)} of {owner}"


def in_worker(culprit: Culprit) -> bool:
    """Whether the culprit runs in a DataLoader worker."""
    return culprit.process == "worker"


def next_command(report: Report) -> NextCommand:
    """What a person should type after reading this report."""
    command = shlex.join(report.run.command)
    command = command if command.isprintable() else sanitize_line(command)
    if not command:
        return NextCommand(_first(report.verdict.advice) or "nothing to type", None)
    if report.run.steps == 0:
        return NextCommand("once the loop takes steps:", f"unstall run {command}")
    verdict = report.verdict
    if verdict.confidence == "low":
        return _surer(report, command)
    if verdict.pattern == HEALTHY:
        return NextCommand("nothing to fix", None)
    step = verdict.next_step
    if step is not None and not (step.option == "--modules" and report.modules):
        return NextCommand(
            sanitize_line(step.label), " ".join(filter(None, ("unstall run", sanitize_line(step.option), command)))
        )
    if report.kind == "run" and report.run.world_size == 1:
        return NextCommand("prove it by experiment (and then: unstall optimize):", f"unstall simplify {command}")
    return NextCommand("fix, run again, then:", "unstall compare")


def _surer(report: Report, command: str) -> NextCommand:
    """What raises a low confidence."""
    if report.communication is not None and report.communication.unseen:
        return NextCommand("on the other nodes too, to see which rank waits least:", f"unstall run {command}")
    others = report.utilization.other_processes_cores
    if units.known(others) and others >= BUSY_CORES:
        return NextCommand("other processes took the cores; when they are done:", f"unstall run {command}")
    if report.run.attached:
        longer = f"unstall attach --record --duration {2 * report.run.duration_s:.0f}s PID"
        return NextCommand("low confidence: record for longer:", longer)
    if report.run.exit_code is not None:  # it ended by itself, so asking for more would get no more
        why = "low confidence: give the program more epochs or data, then:"
        return NextCommand(why, f"unstall run {command}")
    steps = max(STABLE_STEPS, 2 * report.run.steps)
    return NextCommand("low confidence: watch more steps:", f"unstall run --steps {steps} {command}")


def _no_verdict(report: Report) -> str:
    why = _first(report.verdict.evidence) or _first(report.run.notes)
    advice = _first(report.verdict.advice)
    reason = f" ({sanitize_line(why).rstrip('.')})" if why else ""
    what_to_do = f"; what to do: {sanitize_line(advice).rstrip('.')}" if advice else ""
    return f"no verdict: no step was seen{reason}{what_to_do}"


def _first(lines: Sequence[str]) -> str | None:
    return lines[0] if lines else None


def _clause(finding: Finding) -> str:
    """What takes the time, as the middle of the sentence; of a report that has none, its first evidence."""
    return sanitize_line(finding.summary) or sanitize_line(_first(finding.evidence) or "")


def _tail(finding: Finding) -> str:
    """The end of the sentence: the possible gain, how it is known, how sure that is."""
    sure = f"{finding.confidence} confidence"
    promised = promise.ceiling(finding, finding.condition) or promise.gain(finding)
    return f"; {promised}; {sure}" if promised else f" ({sure})"


def _short_path(file: str) -> str:
    for packages in ("/site-packages/", "/dist-packages/"):
        if packages in file:
            return file.rpartition(packages)[2]
    try:
        path = Path(file)
        cwd = Path.cwd()
        return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else file
    except (OSError, ValueError):  # the working directory is gone, or the name is no path
        return file
