"""A verdict on a program that was only looked at from outside: by where its processes stand, and whether they work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from unstall.benchmark.attached import AttachedObservation
from unstall.benchmark.environment import usable_cores
from unstall.benchmark.resources import growth, other_cores
from unstall.child.seams.collectives import COLLECTIVE
from unstall.diagnose.blame import culprit
from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.placing import Placed, Placer, count, is_idle
from unstall.diagnose.program_frames import short
from unstall.diagnose.ranks import named
from unstall.diagnose.thresholds import BUSY_ELSEWHERE, LATE_RANK_SHARE, MOVING, NO_CORE, STUCK_S, STUCK_SAMPLES
from unstall.records.attached import AttachedProcess, AttachReport
from unstall.records.measurements import Measurement
from unstall.records.report import Culprit
from unstall.records.run import StepTime
from unstall.records.vocabulary import BACKWARD, COMM, DATA_WAIT, MODEL_PHASES, OPTIMIZER, OTHER, PHASES, PhaseName
from unstall.text.units import number, percent, seconds

_WORKER = re.compile(r"torch[/\\]utils[/\\]data[/\\]_utils[/\\]worker\.py$")
_LAUNCHER = re.compile(r"(torch[/\\]distributed[/\\](run|launcher|elastic)\b|accelerate[/\\]commands)")
_UNKNOWN = (
    "how long a step takes, and what would be gained: nothing was recorded inside the program",
    "what a device does: only that the program waits for it",
)


class _Role(NamedTuple):
    """What a process is in the program."""

    kind: Literal["main", "rank", "loader worker", "launcher", "helper"]
    rank: int | None = None

    def __str__(self) -> str:
        return self.kind if self.rank is None else f"{self.kind} {self.rank}"

    @property
    def trains(self) -> bool:
        """Whether it may run the main loop."""
        return self.kind in ("main", "rank")


@dataclass(frozen=True)
class _Watched:
    """A process with its samples."""

    process: AttachedProcess
    role: _Role
    placed: Sequence[Placed]
    """Samples of its main thread."""

    @property
    def waits(self) -> float:
        """Share of the time that it waits for other ranks: in collectives, and idle in backward and the optimizer."""
        phases = self.process.phases
        inside = phases.get(BACKWARD.name, 0.0) + phases.get(OPTIMIZER.name, 0.0)
        return phases.get(COMM.name, 0.0) + min(inside, max(0.0, 1 - self.process.cores))


def judge(observed: AttachedObservation) -> AttachReport:
    """The verdict on what was observed, and what it rests on."""
    watched = _watched(observed)
    trainers = [each for each in watched if each.role.trains]
    trainers = trainers or watched[:1]
    workers = [each for each in watched if each.role.kind == "loader worker"]
    pattern, headline, share, blamed, evidence = _verdict(trainers, workers, observed)
    return AttachReport(
        pid=observed.pid,
        command=observed.command,
        watched_s=observed.observation.ended - observed.observation.began,
        pattern=pattern,
        headline=headline,
        share=share,
        culprit=blamed,
        evidence=[*evidence, *_cores(trainers, observed)],
        unknown=[*_UNKNOWN, *_unseen(observed)],
        processes=[each.process for each in watched],
    )


_Verdict = tuple[str, str, float | None, Culprit | None, list[str]]


def _verdict(trainers: Sequence[_Watched], workers: Sequence[_Watched], observed: AttachedObservation) -> _Verdict:
    watched_s = observed.observation.ended - observed.observation.began
    if watched_s >= STUCK_S and all(each.process.stuck for each in (*trainers, *workers)):
        return _hung(trainers, watched_s)
    if len(trainers) > 1:
        least, most = min(trainers, key=lambda each: each.waits), max(trainers, key=lambda each: each.waits)
        if most.waits - least.waits >= LATE_RANK_SHARE:
            return _straggler(least, most, workers)
    main = max(trainers, key=lambda each: each.process.cores)
    phase, share = _largest(main.process.phases)
    pattern, words = _doing(phase)
    samples = [placed for placed in main.placed if _group(placed.phase) == phase]
    blamed = _culprit_of(main, phase, samples, workers)
    return pattern, f"{main.process.role} {words} for {percent(share)} of the time", share, blamed, []


def _doing(phase: str) -> tuple[str, str]:
    """(pattern, what a process does) in a phase; what no pattern is about is the program's own code."""
    known = {name: (pattern.name, words) for pattern in all_patterns().values() for name, words in pattern.doing}
    return known.get(phase, known[OTHER.name])


def _hung(trainers: Sequence[_Watched], watched_s: float) -> _Verdict:
    """Where each stands; of several, who is not where the others wait for it."""
    outside = [each for each in trainers if not each.process.collective]
    blamed = outside[0] if outside and len(outside) < len(trainers) else trainers[0]
    headline = f"nothing moved for {seconds(watched_s)}: it hangs, or waits for something that takes longer"
    return "hung", headline, None, blamed.process.place, [_stands(each.process) for each in trainers]


def _stands(process: AttachedProcess) -> str:
    place = process.place
    at = f" at {place.function}, {place.file}:{place.line}" if place else ""
    inside = f" in the collective {process.collective}" if process.collective else ""
    return f"{process.role} (process {process.pid}) stands{inside}{at}"


def _straggler(slowest: _Watched, waiting: _Watched, workers: Sequence[_Watched]) -> _Verdict:
    phases = {name: share for name, share in slowest.process.phases.items() if name not in (COMM.name, *MODEL_PHASES)}
    phase, _ = _largest(phases or slowest.process.phases)
    samples = [placed for placed in slowest.placed if _group(placed.phase) == phase]
    share = waiting.waits - slowest.waits
    headline = f"{slowest.process.role} waits least for the others: they wait for it up to {percent(share)} of the time"
    evidence = [
        f"{each.process.role} waits {percent(each.waits)} of the time in collectives" for each in (slowest, waiting)
    ]
    return "straggler", headline, share, _culprit_of(slowest, phase, samples, workers), evidence


def _culprit_of(
    watched: _Watched, phase: str, samples: Sequence[Placed], workers: Sequence[_Watched]
) -> Culprit | None:
    """Who holds the time; of a wait for batches, what its loader workers do."""
    if phase == DATA_WAIT.name and workers:
        placed_in_workers = [placed for worker in workers for placed in worker.placed if not is_idle(placed)]
        by_worker = culprit(placed_in_workers, sum(count(worker.placed) for worker in workers), "worker")
        if by_worker is not None:
            return by_worker
    return culprit(samples, count(watched.placed), watched.process.role)


def _watched(observed: AttachedObservation) -> list[_Watched]:
    """Every process that showed a Python stack, ranks in order, then the rest as they came."""
    placer = Placer(_nothing_recorded(observed))
    by_pid: dict[int, list[Placed]] = {}
    for sample in observed.observation.samples:
        if sample.main_thread:
            by_pid.setdefault(sample.pid, []).append(placer.place(sample))
    roles = {pid: _role(pid, placed, observed) for pid, placed in by_pid.items()}
    if not any(role.trains for role in roles.values()):
        candidates = [pid for pid, role in roles.items() if role.kind == "helper"] or list(roles)
        roles[max(candidates, key=lambda pid: _program_samples(by_pid[pid]))] = _Role("main")
    watched = [_Watched(_process(pid, roles[pid], by_pid[pid], observed), roles[pid], by_pid[pid]) for pid in by_pid]
    return sorted(watched, key=lambda each: (observed.ranks.get(each.process.pid, (1 << 30, 0))[0], each.process.pid))


def _nothing_recorded(observed: AttachedObservation) -> Measurement:
    """What places samples by their stacks alone."""
    return Measurement(
        kind="attached",
        steps=0,
        warmup=0,
        total_steps=0,
        step=StepTime(0.0, 0.0, 0.0),
        phases=[],
        cores=usable_cores(),
        main_pid=observed.pid,
    )


def _role(pid: int, placed: Sequence[Placed], observed: AttachedObservation) -> _Role:
    files = [frame.file for each in placed for frame in each.sample.frames]
    if any(_WORKER.search(file) for file in files):
        return _Role("loader worker")
    if any(_LAUNCHER.search(file) for file in files):
        return _Role("launcher")
    if pid in observed.ranks:
        return _Role("rank", observed.ranks[pid][0])
    return _Role("main" if pid == observed.pid and _program_samples(placed) else "helper")


def _program_samples(placed: Sequence[Placed]) -> int:
    return sum(each.count for each in placed if each.program)


def _process(pid: int, role: _Role, placed: Sequence[Placed], observed: AttachedObservation) -> AttachedProcess:
    observation = observed.observation
    points = [point for point in observation.points if point.pid == pid]
    began, ended = (points[0].t, points[-1].t) if points else (0.0, 0.0)
    covered = max(ended - began, 1e-9)

    def rate(counter: str) -> float:
        return growth(points, {pid}, began, ended, counter) / covered

    total = count(placed)
    phases: Counter[PhaseName] = Counter()
    for each in placed:
        phases[_known(each.phase)] += each.count
    cores = rate("cpu_s")
    return AttachedProcess(
        pid=pid,
        role=str(role),
        cores=cores,
        waits_for_core=min(1.0, rate("run_delay_s")),
        read_bytes_per_s=rate("read_bytes"),
        read_chars_per_s=rate("read_chars"),
        rss_bytes=points[-1].rss_bytes if points else 0,
        threads=observed.threads.get(pid, []),
        phases={name: samples / total for name, samples in phases.most_common()},
        place=culprit(placed, total, str(role)),
        collective=_collective(placed),
        stuck=len(placed) == 1
        and total >= STUCK_SAMPLES
        and cores < NO_CORE
        and observed.main_thread.get(pid, 0.0) < MOVING,
    )


def _known(place: str) -> PhaseName:
    """Places of host code are told apart only where steps are recorded."""
    return place if place in {phase.name for phase in PHASES} else OTHER.name


def _group(place: str) -> str:
    phase = _known(place)
    return "model" if phase in MODEL_PHASES else phase


def _largest(phases: Mapping[PhaseName, float]) -> tuple[str, float]:
    """What takes the most of the time: the model as a whole, or another phase."""
    groups: dict[str, float] = {}
    for name, share in phases.items():
        groups[_group(name)] = groups.get(_group(name), 0.0) + share
    return max(groups.items(), key=lambda item: item[1])


def _collective(placed: Sequence[Placed]) -> str:
    """The collective that most samples are in, if more than half are in one."""
    names: Counter[str] = Counter()
    for each in placed:
        names[_collective_on(each)] += each.count
    name, samples = names.most_common(1)[0]
    return name if 2 * samples > names.total() else ""


def _collective_on(placed: Placed) -> str:
    """The outermost function of torch.distributed on a stack: what the program called."""
    for frame in placed.sample.frames:
        if any(re.search(file, frame.file) for file, _ in COLLECTIVE.frames):
            function = short(frame.function)
            if function != "wrapper":  # torch's own decorator, around each
                return function
    return ""


def _cores(trainers: Sequence[_Watched], observed: AttachedObservation) -> list[str]:
    """Whether there were cores to run on."""
    observation = observed.observation
    lines = []
    waiting = max(trainers, key=lambda each: each.process.waits_for_core).process
    if waiting.waits_for_core >= LATE_RANK_SHARE:
        lines.append(f"{waiting.role} was ready and had no core for {percent(waiting.waits_for_core)} of the time")
    others = other_cores(observation.machine, observation.points, observation.began, observation.ended)
    if others >= BUSY_ELSEWHERE:
        lines.append(f"other programs took {number(round(others, 1))} of {number(usable_cores())} cores")
    return lines


def _unseen(observed: AttachedObservation) -> list[str]:
    """Ranks that are not below this process."""
    if not observed.ranks:
        return []
    world_size = max(world for _, world in observed.ranks.values())
    unseen = set(range(world_size)) - {rank for rank, _ in observed.ranks.values()}
    return [f"{named(unseen)} of {world_size}: not below this process"] if unseen else []
