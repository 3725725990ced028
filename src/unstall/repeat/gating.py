"""Everything around a gate: the baseline checked out or looked up, the sandbox, and the result put together."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from unstall.benchmark import archive, rundir
from unstall.benchmark.archive import Archive, ArchiveError
from unstall.benchmark.environment import environment
from unstall.records import Report
from unstall.repeat import arms, differences, revision
from unstall.repeat.arms import Arm
from unstall.repeat.gate import Gate, GateResult, Pair, Recorded, Slowdown
from unstall.repeat.sequential import Finding, Plan
from unstall.repeat.worktree import Worktree, check_out
from unstall.simplify.sandbox import Sandbox, open_sandbox

_FEWEST_STEPS, _MOST_STEPS = 50, 2000
_WANTED_ERROR = 0.025  # of a run's mean step, relative


class GateError(Exception):
    """The gate cannot be held; one line that says why and what to do."""


@dataclass(frozen=True)
class Request:
    """What the person asked for."""

    words: Sequence[str]
    baseline: str
    """A git revision, or a recorded run."""
    plan: Plan
    steps: int | None = None
    """Measured steps a run; as many as their noise asks for if not given."""
    budget_s: float = 1200.0
    """For starting runs; the one that is running then is finished."""
    sandbox_required: bool = True
    network_writes: bool = False


def hold(request: Request, on_pair: Callable[[Pair, int], None]) -> GateResult:
    """Hold the gate in the working directory. Nothing of the programs' writes stays.

    Raises:
        GateError: the recorded baseline is of another machine, or has no steps.
        WorktreeError: the baseline's revision cannot be checked out.
        ArmError: a run of either side gave nothing to compare.
        SandboxError: nothing here can keep the runs from changing files.
    """
    began = time.monotonic()
    folder = Path.cwd()
    with _workplace(folder) as place:
        recorded = _recorded(request.baseline)
        if recorded is not None:
            plan, baseline, notes = _against_record(request.plan, recorded)
            finding, gate, note = _decide(request, plan, baseline, place, on_pair)
            label = f"run {recorded.report.run.id}"
        else:
            notes = []
            with check_out(request.baseline, folder, place / "baseline") as tree:
                arm = _arm(tree, request.words, folder)
                finding, gate, note = _decide(request, request.plan, arm, place, on_pair)
            label = f"{request.baseline} ({tree.commit[:8]})"
        notes += [note] if note else []
        return _result(request, finding, gate, label, [*notes, *_notes(gate)], time.monotonic() - began)


def _decide(
    request: Request, plan: Plan, baseline: Arm | Recorded, place: Path, on_pair: Callable[[Pair, int], None]
) -> tuple[Finding, Gate, str | None]:
    """The finding, the gate it was made at, and what the person must know of the sandbox."""
    folder, recordings = Path.cwd(), place / "recordings"
    recordings.mkdir()
    with open_sandbox(
        folder, [recordings], network_writes=request.network_writes, required=request.sandbox_required
    ) as sandbox:
        candidate = Arm("candidate", request.words, folder)
        run = _Runner(sandbox, recordings, request)
        run.choose_steps(baseline if isinstance(baseline, Arm) else candidate)
        gate = Gate(plan, baseline, candidate, run, budget_s=request.budget_s, on_pair=on_pair)
        finding = gate.decide()
        refused = sandbox.refused()
        note = None if sandbox.force == "overlay" else sandbox.note
        return finding, gate, "; ".join([*([note] if note else []), *refused]) or None


class _Runner:
    """Runs the arms of one gate."""

    def __init__(self, sandbox: Sandbox, recordings: Path, request: Request):
        self._sandbox, self._recordings, self._request = sandbox, recordings, request
        self._steps = request.steps or _FEWEST_STEPS

    def __call__(self, arm: Arm, number: int) -> arms.Run:
        directory = self._recordings / f"{number:03}"
        return arms.run(arm, self._sandbox, directory, steps=self._steps, limit_s=self._request.budget_s)

    def choose_steps(self, arm: Arm) -> None:
        """Unless their number was given, ask one run, which counts for nothing else, how much its steps vary."""
        if self._request.steps is None:
            self._steps = steps_for(self(arm, 0))


def steps_for(pilot: arms.Run) -> int:
    """How many steps a run needs for its mean to be known well enough; runs differ by more than the rest anyway."""
    wanted = pilot.steps * (pilot.error / _WANTED_ERROR) ** 2
    return int(min(max(wanted, _FEWEST_STEPS), _MOST_STEPS))


@contextlib.contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """A directory for the baseline's code and the recordings, in ``.unstall``: no tool takes that for the user's."""
    try:
        directory = rundir.make(folder)
    except OSError as error:
        raise GateError(f"no place for the recordings: {error.strerror or error}") from error
    try:
        yield directory.path
    finally:
        rundir.remove(directory.path)


def _arm(tree: Worktree, words: Sequence[str], folder: Path) -> Arm:
    place = tree.twin(folder)
    if not place.is_dir():
        raise GateError(f"the baseline has no folder {folder.relative_to(tree.top)}")
    return Arm("baseline", tree.words(words), place, tree.environment)


def _recorded(name: str) -> Archive | None:
    """The recorded run that is meant, if one is; a git revision by the same name comes second."""
    try:
        rundir.find(name, finished=True)
    except LookupError:
        return None
    try:
        return archive.load(name)
    except ArchiveError as error:
        # A file or folder of that name that is no recording: a branch may be called so as well.
        if revision.git(Path.cwd(), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"):
            return None
        raise GateError(str(error)) from error


def _against_record(plan: Plan, recorded: Archive) -> tuple[Plan, Recorded, list[str]]:
    """The plan for a recorded baseline, what it took, and what is to be minded."""
    report = recorded.report
    step = report.throughput.step_s
    if step is None or step.mean <= 0:
        raise GateError(f"the run {report.run.id} has no measured steps")
    now = Archive(report=_with_environment(recorded))
    changed = differences.of_the_machine(differences.between(recorded, now))
    machine = [change for change in changed if change.subject == "machine"]
    if machine:
        told = ", ".join(f"{change.name} {change.a} then and {change.b} now" for change in machine)
        raise GateError(f"the run {report.run.id} was made on another machine ({told}): give a git revision instead")
    notes = [f"{change.name} was {change.a} in the baseline and is {change.b} now" for change in changed]
    notes.append("the baseline is one recorded run: a git revision, run in turns with the candidate, tells more")
    phases = {phase.name: phase.mean_s for phase in report.phases}
    return replace(plan, recorded=True), Recorded(step.mean, phases), notes


def _with_environment(recorded: Archive) -> Report:
    """The recorded report as if it had been made here and now, by a program that is not known yet."""
    report = recorded.report
    here = {**report.run.environment, **environment()}
    return msgspec.structs.replace(report, run=msgspec.structs.replace(report.run, environment=here))


def _result(
    request: Request, finding: Finding, gate: Gate, label: str, notes: list[str], duration_s: float
) -> GateResult:
    assert finding.decision != "go on"
    slowdown = finding.slowdown
    now = revision.of(Path.cwd())
    changes = " with uncommitted changes" if now.dirty else ""
    return GateResult(
        decision=finding.decision,
        allowance=request.plan.allowance,
        slowdown=Slowdown(slowdown.value, slowdown.low, slowdown.high) if slowdown else None,
        baseline=label,
        candidate=f"{now.commit[:8]}{changes}" if now.commit else "the working directory",
        command=list(request.words),
        pairs=gate.pairs,
        phases=gate.phases(),
        duration_s=duration_s,
        notes=notes,
    )


def _notes(gate: Gate) -> list[str]:
    notes = []
    aside = sum(not pair.counts for pair in gate.pairs)
    if aside:
        notes.append(
            f"{aside} pairs were set aside, because others used the machine during one side more than the other"
        )
    if len(gate.log_ratios) < 3:
        notes.append("fewer than three pairs fitted into the time: ask for fewer --steps, or a larger --budget")
    return notes
