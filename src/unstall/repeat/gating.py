"""Everything around a gate: the baseline checked out or looked up, the sandbox, and the result put together."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from unstall.benchmark import archive, rundir
from unstall.benchmark.archive import ArchiveError
from unstall.benchmark.environment import environment
from unstall.records.archive import Archive
from unstall.records.comparison import GateResult, Pair, Slowdown
from unstall.records.report import Report
from unstall.repeat import arms, differences, revision
from unstall.repeat.arms import Arm
from unstall.repeat.gate import Gate, Recorded
from unstall.repeat.sequential import FIRST_END, Finding, Plan
from unstall.repeat.worktree import Worktree, check_out
from unstall.sandbox import Sandbox, leftovers, open_sandbox

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


def hold(request: Request, on_pair: Callable[[Pair, int], None], tell: Callable[[str], None]) -> GateResult:
    """Hold the gate in the working directory. Nothing of the programs' writes stays.

    ``tell`` takes a line on what is going on, ``on_pair`` each pair and the number of those that count.

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
            finding, gate, note = _decide(request, plan, baseline, place, on_pair, tell)
            label = f"run {recorded.report.run.id}"
        else:
            notes = []
            with check_out(request.baseline, folder, place / "baseline") as tree:
                arm = _arm(tree, request, folder)
                if tree.shared_code:
                    notes.append(f"git does not know {_listed(tree.shared_code)}: both sides ran the same")
                finding, gate, note = _decide(request, request.plan, arm, place, on_pair, tell)
            label = f"{request.baseline} ({tree.commit[:8]})"
        notes += [note] if note else []
        return _result(request, finding, gate, label, [*notes, *notes_of(gate, finding)], time.monotonic() - began)


def _decide(
    request: Request,
    plan: Plan,
    baseline: Arm | Recorded,
    place: Path,
    on_pair: Callable[[Pair, int], None],
    tell: Callable[[str], None],
) -> tuple[Finding, Gate, str | None]:
    """The finding, the gate it was made at, and what the person must know of the sandbox."""
    began = time.monotonic()
    folder, recordings = Path.cwd(), place / "recordings"
    recordings.mkdir()
    with open_sandbox(
        folder,
        [recordings],
        network_writes=request.network_writes,
        required=request.sandbox_required,
        tell=tell,
    ) as sandbox:
        candidate = Arm("candidate", request.words, folder)
        run = _Runner(sandbox, recordings, request)
        if request.steps is None:
            tell("a first run tells how much the steps vary; it counts for nothing else")
        run.choose_steps(baseline if isinstance(baseline, Arm) else candidate)
        left_s = request.budget_s - (time.monotonic() - began)
        gate = Gate(plan, baseline, candidate, run, budget_s=left_s, on_pair=on_pair)
        finding = gate.decide()
        refused = sandbox.refused()
        return finding, gate, "; ".join([*sandbox.limits, *refused, *sandbox.reached()]) or None


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
    _remove_abandoned(directory.path.parent, folder)
    claim = leftovers.claim(directory.path)
    try:
        yield directory.path
    finally:
        rundir.remove(directory.path)
        if claim is not None:
            claim.close()


def _remove_abandoned(runs: Path, folder: Path) -> None:
    """Remove the workplaces of gates that were killed, and let git forget the worktrees in them."""
    abandoned = False
    for leftover, _ in leftovers.abandoned([runs], ""):
        shutil.rmtree(leftover, ignore_errors=True)
        abandoned = True
    if abandoned:
        revision.git(folder, "worktree", "prune")


def _arm(tree: Worktree, request: Request, folder: Path) -> Arm:
    """The baseline's side. GateError where it has no such program, or only the candidate's."""
    place = tree.twin(folder)
    if not place.is_dir():
        raise GateError(f"{request.baseline} has no folder {folder.relative_to(tree.top)}")
    for script in (Path(word) for word in request.words if word.endswith(".py")):
        if not (folder / script).is_file():
            continue
        if tree.shares(folder / script):
            raise GateError(f"git does not know {script}, so both sides would run the same: commit it first")
        if not tree.twin(folder / script).is_file():
            raise GateError(f"{request.baseline} ({tree.commit[:8]}) has no {script}: name a revision that has it")
    return Arm("baseline", tree.words(request.words), place, tree.environment)


def _listed(names: Sequence[str], most: int = 3) -> str:
    """Names in a sentence, the first few."""
    more = len(names) - most
    return f"{', '.join(names[:most])} and {more} more" if more > 0 else ", ".join(names)


def _recorded(name: str) -> Archive | None:
    """The recorded run that is meant, if one is; a git revision by the same name comes second."""
    try:
        rundir.find(name, finished=True)
    except LookupError as error:
        if name == "last":
            raise GateError(str(error.args[0])) from error
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
    # More than so many runs of the candidate do not make a single draw of the baseline any surer.
    return replace(plan, recorded=True, most=min(plan.most, FIRST_END)), Recorded(step.mean, phases), notes


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


def notes_of(gate: Gate, finding: Finding) -> list[str]:
    """What is to be minded about a finding, and what would tell more."""
    notes = []
    aside = sum(not pair.counts for pair in gate.pairs)
    if aside:
        notes.append(
            f"{aside} pairs were set aside, because others used the machine during one side more than the other"
        )
    if finding.slowdown is None:
        notes.append("fewer than three pairs fitted into the time: ask for fewer --steps, or a larger --budget")
    elif finding.decision == "cannot tell" and gate.plan.recorded:
        notes.append("a single recorded run cannot tell so little: give a git revision as the baseline")
    elif finding.decision == "cannot tell":
        limit = (
            "the time was over: a larger --budget" if gate.out_of_time else "no more pairs were asked for: more --pairs"
        )
        notes.append(f"{limit}, or a quieter machine, tells more")
    return notes
