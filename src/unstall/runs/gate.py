"""``unstall gate``: is the candidate slower than the baseline?"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unstall.benchmark import archive, command, rundir
from unstall.benchmark.archive import ArchiveError
from unstall.benchmark.environment import environment
from unstall.records.archive import Archive
from unstall.records.comparison import GatePair, GateResult, Slowdown
from unstall.repeat import arms, differences, revision
from unstall.repeat.arms import Arm, ArmError
from unstall.repeat.gate import Gate, RecordedBaseline
from unstall.repeat.sequential import SequentialPlan, SequentialResult
from unstall.repeat.thresholds import FEWEST_STEPS, FIRST_END
from unstall.repeat.worktree import Worktree, WorktreeError, check_out
from unstall.report.progress import Progress
from unstall.runs.errors import Refused, refusing
from unstall.runs.workplace import SandboxChoice, make_directory, open_sandbox
from unstall.sandbox import Sandbox, leftovers

__all__ = ["GateRequest", "SequentialPlan", "hold", "notes_of"]


@dataclass(frozen=True)
class GateRequest:
    """What the person asked for."""

    words: Sequence[str]
    baseline: str
    """A git revision, or a recorded run."""
    plan: SequentialPlan
    steps: int | None
    """Measured steps a run; as many as their noise asks for if not given."""
    budget_s: float
    """Seconds for starting runs; the one that is running then is finished."""
    sandbox: SandboxChoice


@dataclass(frozen=True)
class _Baseline:
    """What the candidate is compared with."""

    side: Arm | RecordedBaseline
    label: str
    plan: SequentialPlan
    notes: list[str]


def hold(request: GateRequest, progress: Progress, describe: Callable[[GatePair, int, int], str]) -> GateResult:
    """Run baseline and candidate in turns, in the working directory, until the answer is clear.

    Nothing of the programs' writes stays.

    Args:
        request: what to compare, and how surely.
        progress: gets a line for each pair of runs.
        describe: makes that line: of the pair, how many count so far, and after how many the gate may end next.

    Raises:
        Refused: the gate cannot be held, or broke; never an exception of another kind, because Python would end with
            1, and that is the code of a proven regression.
    """

    def on_pair(pair: GatePair, counted: int) -> None:
        progress.log(describe(pair, counted, request.plan.next_look(counted)))

    try:
        with refusing(WorktreeError, ArmError, command.CommandError):
            command.resolve(request.words)
            return _hold(request, progress, on_pair)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"the gate failed unexpectedly, please report this: {type(error).__name__}: {error}") from error


def _hold(request: GateRequest, progress: Progress, on_pair: Callable[[GatePair, int], None]) -> GateResult:
    began = time.monotonic()
    with _workplace() as workplace:
        recordings = workplace / "recordings"
        recordings.mkdir()
        with _baseline(request, Path.cwd(), workplace / "tree") as baseline:
            ready = time.monotonic()
            with open_sandbox(request.sandbox, recordings, progress.log) as sandbox:
                candidate = Arm("candidate", request.words, Path.cwd())
                run = _Runner(sandbox, recordings, request)
                if request.steps is None:
                    progress.log("a first run, which does not count, shows how much the steps vary")
                    run.choose_steps(baseline.side if isinstance(baseline.side, Arm) else candidate)
                left_s = request.budget_s - (time.monotonic() - ready)
                gate = Gate(baseline.plan, baseline.side, candidate, run, budget_s=left_s, on_pair=on_pair)
                finding = gate.decide()
                notes = "; ".join([*sandbox.limits, *sandbox.refused(), *sandbox.reached()])
        notes_in_order = [*baseline.notes, *([notes] if notes else []), *notes_of(gate, finding)]
        return _result(request, baseline.label, finding, gate, notes_in_order, time.monotonic() - began)


@contextlib.contextmanager
def _workplace() -> Iterator[Path]:
    """Where revisions are checked out and recordings go; no tool takes what is there for the user's."""
    with leftovers.claimed(lambda: make_directory().path) as directory:
        _remove_abandoned(directory.parent, Path.cwd())
        try:
            yield directory
        finally:
            rundir.remove(directory)


def _remove_abandoned(runs: Path, folder: Path) -> None:
    """Remove the workplaces of gates that were killed, and let git forget the worktrees in them."""
    left_over = [leftover for leftover, _ in leftovers.abandoned([runs], "")]
    for leftover in left_over:
        shutil.rmtree(leftover, ignore_errors=True)
    if left_over:
        revision.git(folder, "worktree", "prune")


class _Runner:
    """Runs the arms of one gate."""

    def __init__(self, sandbox: Sandbox, recordings: Path, request: GateRequest):
        self._sandbox, self._recordings, self._request = sandbox, recordings, request
        self._steps = request.steps or FEWEST_STEPS

    def __call__(self, arm: Arm, number: int) -> arms.ArmRun:
        folder = self._recordings / f"{number:03}"
        return arms.run(arm, self._sandbox, folder, steps=self._steps, limit_s=self._request.budget_s)

    def choose_steps(self, arm: Arm) -> None:
        """Ask one run, which counts for nothing else, how much its steps vary."""
        self._steps = arms.steps_for(self(arm, 0))


@contextlib.contextmanager
def _baseline(request: GateRequest, folder: Path, into: Path) -> Iterator[_Baseline]:
    """The recorded run that is meant, or the revision, checked out as ``into``."""
    recorded = _recorded(request.baseline)
    if recorded is not None:
        yield _of_record(request.plan, recorded)
        return
    with check_out(request.baseline, folder, into) as tree:
        notes = []
        if tree.shared_code:
            notes.append(f"git does not know {_listed(tree.shared_code)}: both sides ran the same")
        label = f"{request.baseline} ({tree.commit[:8]})"
        yield _Baseline(_arm(tree, request, folder), label, request.plan, notes)


def _arm(tree: Worktree, request: GateRequest, folder: Path) -> Arm:
    """The baseline's side. Raises Refused where it has no such program, or only the candidate's."""
    twin = tree.twin(folder)
    if not twin.is_dir():
        raise Refused(f"{request.baseline} has no folder {folder.relative_to(tree.top)}")
    for script in (Path(word) for word in request.words if word.endswith(".py")):
        if not (folder / script).is_file():
            continue
        if tree.shares(folder / script):
            raise Refused(f"git does not know {script}, so both sides would run the same: commit it first")
        if not tree.twin(folder / script).is_file():
            raise Refused(f"{request.baseline} ({tree.commit[:8]}) has no {script}: name a revision that has it")
    return Arm("baseline", tree.words(request.words), twin, tree.environment)


def _listed(names: Sequence[str], most: int = 3) -> str:
    """Names in a sentence, the first few."""
    left_out = len(names) - most
    return f"{', '.join(names[:most])} and {left_out} more" if left_out > 0 else ", ".join(names)


def _recorded(name: str) -> Archive | None:
    """The recorded run that is meant, if one is; a git revision by the same name comes second."""
    try:
        rundir.find(name, finished=True)
    except LookupError as error:
        if name == "last":
            raise Refused(str(error.args[0])) from error
        return None
    try:
        return archive.load(name)
    except ArchiveError as error:
        # A file or folder of that name that is no recording: a branch may be called so as well.
        if revision.git(Path.cwd(), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"):
            return None
        raise Refused(str(error)) from error


def _of_record(plan: SequentialPlan, recorded: Archive) -> _Baseline:
    """A run as the baseline. Raises Refused where it has no steps, or was made on another machine."""
    report = recorded.report
    step = report.throughput.step_s
    if step is None or step.mean <= 0:
        raise Refused(f"the run {report.run.id} has no measured steps")
    current = {**report.run.environment, **environment()}
    changed = differences.of_the_machine(
        differences.between(recorded, Archive(report=report.with_run(environment=current)))
    )
    machine = [f"{change.name} {change.a} then and {change.b} now" for change in changed if change.subject == "machine"]
    if machine:
        raise Refused(
            f"the run {report.run.id} was made on another machine ({', '.join(machine)}): give a git revision instead"
        )
    notes = [f"{change.name} was {change.a} in the baseline and is {change.b} now" for change in changed]
    notes.append("the baseline is one recorded run: a git revision, run in turns with the candidate, is more reliable")
    # More than so many runs of the candidate do not make a single draw of the baseline any surer.
    plan = replace(plan, recorded=True, most=min(plan.most, FIRST_END))
    phases = {phase.name: phase.mean_s for phase in report.phases}
    return _Baseline(RecordedBaseline(step.mean, phases, recorded.measurement), f"run {report.run.id}", plan, notes)


def _result(
    request: GateRequest, baseline: str, finding: SequentialResult, gate: Gate, notes: list[str], duration_s: float
) -> GateResult:
    assert finding.decision != "go on"
    slowdown = finding.slowdown
    code = revision.of(Path.cwd())
    changes = " with uncommitted changes" if code.dirty else ""
    return GateResult(
        decision=finding.decision,
        allowance=request.plan.allowance,
        slowdown=Slowdown(slowdown.value, slowdown.low, slowdown.high) if slowdown else None,
        baseline=baseline,
        candidate=f"{code.commit[:8]}{changes}" if code.commit else "the working directory",
        command=list(request.words),
        pairs=gate.pairs,
        phases=gate.phases(),
        duration_s=duration_s,
        notes=notes,
        differences=gate.settings(),
    )


def notes_of(gate: Gate, finding: SequentialResult) -> list[str]:
    """What to keep in mind about a finding, and what would make it clearer."""
    notes = []
    aside = sum(not pair.counts for pair in gate.pairs)
    if aside:
        notes.append(
            f"{aside} pairs were set aside, because other programs used the machine more during one side than the other"
        )
    if finding.slowdown is None:
        notes.append("fewer than three pairs fitted the time: use fewer --steps or a larger --budget")
    elif finding.decision == "cannot tell" and gate.plan.recorded:
        notes.append("a single recorded run cannot show so small a change: give a git revision as the baseline")
    elif finding.decision == "cannot tell":
        limit = "the time was up: a larger --budget" if gate.out_of_time else "all pairs are used up: more --pairs"
        notes.append(f"{limit}, or a quieter machine, would help")
    return notes
