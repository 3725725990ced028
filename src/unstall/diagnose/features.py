"""What the patterns look at: the measured step, with host code told apart by the samples, and capacity figures."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unstall.child.seams import autograd, environments, loader, modules, optimizer
from unstall.diagnose import own_threads, source
from unstall.diagnose.blame import Blame, line_culprit
from unstall.diagnose.keepers import Keepers, keepers
from unstall.diagnose.neighbours import without_neighbours
from unstall.diagnose.placing import Placed, count, is_idle
from unstall.diagnose.positions import HOST_PLACES
from unstall.diagnose.program_frames import short
from unstall.diagnose.set_up import Holder, set_up_holder
from unstall.diagnose.thresholds import CHANCE, FEWEST_SAMPLES, LEADS, NAMED_OTHER, STRAY, WRITTEN_BYTES_PER_S
from unstall.records.measurements import Measurement, SeamSite
from unstall.records.model import OperatorLine
from unstall.records.report import Culprit, LineTime, PhaseTime
from unstall.records.run import Account
from unstall.records.vocabulary import (
    BACKWARD,
    COMM,
    ENV,
    FORWARD,
    OPTIMIZER,
    OTHER,
    VALIDATION,
    PhaseName,
    Seam,
    in_order,
)


@dataclass(frozen=True)
class HostFeatures:
    """One measured step, ready for the patterns."""

    measurement: Measurement
    blame: Blame
    attributed: dict[str, float]
    """Seconds a step by phase; what the samples could tell apart in `other` is in its own phase."""
    seconds: dict[str, float]
    """Seconds a step by phase, as ``attributed``, less what threads waited for cores that other programs took."""
    places: dict[str, float]
    """Seconds a step of host code by place; sums to ``seconds[OTHER.name]``."""
    python_in_forward: float
    """Seconds a step of the forward phase that a module of the user's spends in loops of plain Python."""
    set_up: Holder | None
    """Who holds the time before the first step."""

    @functools.cached_property
    def keepers(self) -> Keepers:
        """What the program was seen to keep more of, step by step."""
        return keepers(self.measurement.memory)

    @property
    def step_s(self) -> float:
        """Seconds of a step, without what other programs added to it."""
        return sum(self.seconds.values())

    def phase_s(self, *phases: PhaseName) -> float:
        """Seconds a step in these phases."""
        return sum(self.seconds.get(phase, 0.0) for phase in phases)

    def share(self, *phases: PhaseName) -> float:
        """Share of the step in these phases."""
        return self.phase_s(*phases) / self.step_s

    @property
    def model_s(self) -> float:
        """Seconds a step in the model's mathematics."""
        return self.phase_s(*_model_phases(self.measurement)) - self.python_in_forward

    @property
    def unhindered_model_s(self) -> float:
        """The same in the steps in which least kept its threads from running."""
        phases = _model_phases(self.measurement)
        mean_s = self.measurement.phase_s(*phases)
        if not self.measurement.unhindered_s or mean_s <= 0:
            return self.model_s
        quick_s = sum(self.measurement.unhindered_s.get(phase, 0.0) for phase in phases)
        return self.model_s * min(1.0, quick_s / mean_s)

    @property
    def contended_s(self) -> float:
        """Seconds a step that the model's threads wait for cores that other threads of the program have."""
        return own_threads.contended_s(self.measurement)

    @property
    def efficiency(self) -> float | None:
        """The model's arithmetic rate over this machine's peak, at most 1; None when not known.

        A rate above the peak on a busy machine shows only that the peak was measured while others had the cores.
        """
        model = self.measurement.model
        if not model.flops or not model.peak_flops or self.model_s <= 0:
            return None
        rate = model.flops / self.model_s / model.peak_flops
        if rate > 1 and self.without_neighbours:
            return None
        return min(rate, 1.0)  # torch's matmul may well beat the one that the peak was measured with

    @property
    def writing_share(self) -> float:
        """Share of the model's time that its operators' results take to be written to this machine's memory.

        0 where that is not known, or the model is on a device, whose memory is another.
        """
        model = self.measurement.model
        if not model.written_bytes or "cuda" in model.device or self.model_s <= 0:
            return 0.0
        return min(1.0, model.written_bytes / WRITTEN_BYTES_PER_S / self.model_s)

    @property
    def model_calls(self) -> float:
        """Calls of the model a step; of a request those for each new token, which wait for each other."""
        generation = self.measurement.generation
        return self.measurement.model.forwards / (generation.new_tokens if generation is not None else 1)

    @property
    def acting_s(self) -> float:
        """With one environment at a time: seconds a step of host code around the calls of policy and environment.

        Only what is written in the very functions that make these calls; work in functions of its own is no part.
        Where environments hardly take any time, it is the program's own.
        """
        single = self.measurement.kind == "env" and self.measurement.observations == 1
        if not single or self.share(ENV.name) < LEADS:
            return 0.0
        seams = (environments.STEP.event, modules.FORWARD.event)
        places = {(site.file, site.function) for site in self.measurement.sites if site.seam in seams}
        host = self.blame.in_phase(*HOST_PLACES)
        around_calls = (
            placed
            for placed in host
            if placed.program and (placed.program[-1][0].file, short(placed.program[-1][0].function)) in places
        )
        return self.phase_s(OTHER.name) * count(around_calls) / count(host) if host else 0.0

    def share_of_lines(self, lines: Sequence[OperatorLine], *phases: PhaseName) -> float:
        """Share of the step that the operators of these lines take, in forward and in backward unless one is named."""
        every, shares = self.measurement.operators, 0.0
        for phase in phases or (FORWARD.name, BACKWARD.name):
            name = f"{phase}_s"
            total_s = sum(getattr(line, name) for line in every)
            shares += self.share(phase) * sum(getattr(line, name) for line in lines) / total_s if total_s else 0.0
        return shares

    def headroom_without(self, seconds: float) -> float:
        """How many times faster a step would be if these seconds of it were free."""
        return self.step_s / max(self.step_s - seconds, 0.01 * self.step_s)

    @property
    def used_cores(self) -> float:
        """Cores that this program keeps busy during a step, mean."""
        return (self.measurement.main_cpu_s + self.measurement.worker_cpu_s) / self.measurement.step.mean

    @property
    def demand(self) -> float:
        """Core-seconds that a step needs over those there are in it: 1 when the cores are full."""
        return self.used_cores / self.measurement.cores

    @property
    def spare_cores(self) -> float:
        """Cores that neither this program nor another uses during a step."""
        return max(0.0, self.measurement.cores - self.used_cores - self.measurement.other_cores)

    @property
    def without_neighbours(self) -> bool:
        """Whether what other programs took has been taken out of ``seconds``."""
        return self.seconds != self.attributed

    def sites(self, *seams: Seam) -> list[SeamSite]:
        """Where the program calls these seams."""
        return [site for site in self.measurement.sites if any(seam.covers(site.seam) for seam in seams)]

    def step_lines(self, file: str) -> frozenset[int]:
        """Lines of a file that get a step its batch, gradients or update: a loop around one is the training loop."""
        sites = self.sites(loader.NEXT, autograd.BACKWARD, optimizer.STEP)
        frames = (frame for site in sites for frame in ((site.file, site.function, site.line), *site.callers))
        return frozenset(line for name, _, line in frames if name == file)

    def caller(self, *seams: Seam, share: float) -> Culprit | None:
        """The first line of the program that calls one of these seams; None where none was seen."""
        sites = self.sites(*seams)
        return line_culprit(sites[0], share=share) if sites else None

    def busiest_site(self, samples: Iterable[Placed], *seams: Seam) -> SeamSite | None:
        """Of the lines that call these seams, the one that most of these samples are in; the first where none is."""
        sites = self.sites(*seams)
        lines = {(site.file, site.line) for site in sites}
        hits = Counter[tuple[str, int]]()
        for placed in samples:
            innermost = ((frame.file, frame.line) for frame in reversed(placed.sample.frames))
            hits[next((line for line in innermost if line in lines), ("", 0))] += placed.count
        return max(sites, key=lambda site: hits[site.file, site.line], default=None)

    @property
    def own_update(self) -> Culprit | None:
        """The function that holds the optimizer's time, where that is the program's own and not a library's."""
        blamed = self.blame.main_culprit(self.blame.in_phase(OPTIMIZER.name))
        calling = {(site.file, site.function) for site in self.sites(optimizer.STEP)}
        if blamed is None or (blamed.file, short(blamed.function)) in calling:
            return None
        return blamed

    def worker_samples(self) -> list[Placed]:
        """Samples of other processes that were at work."""
        return [placed for placed in self.blame.workers if not is_idle(placed)]

    @property
    def worker_total(self) -> int:
        """Samples of the other processes that run code of the program's; a framework may have more of its own."""
        pids = {placed.sample.pid for placed in self.blame.workers if placed.program}
        return count(placed for placed in self.blame.workers if placed.sample.pid in pids or not pids)

    @property
    def account(self) -> Account | None:
        """What the shares are of, where that is not the step as it was timed."""
        return Account(name="without_neighbours", step_s=self.step_s) if self.without_neighbours else None

    def refined_phases(self) -> list[PhaseTime]:
        """The phases of the report: the one account that every share on the screen is taken from."""
        measured = {phase.name: phase for phase in self.measurement.phases}
        added = {phase.name: phase.what for phase in self.measurement.plugins.phases}
        phases = []
        for name in in_order(self.seconds):
            seconds = self.seconds.get(name, 0.0)
            if seconds <= 0:
                continue
            old = measured.get(name)
            scale = seconds / old.mean_s if old and old.mean_s else 1.0
            phases.append(
                PhaseTime(
                    name=name,
                    share=self.share(name),
                    mean_s=seconds,
                    p95_s=max(old.p95_s * scale, seconds) if old else seconds,
                    network_s=min(old.network_s, seconds) if old else 0.0,
                    network_bytes=old.network_bytes if old else 0.0,
                    blocked_s=min(old.blocked_s, seconds) if old else 0.0,
                    cpu_s=old.cpu_s if old else None,
                    wall_s=old.mean_s if old else 0.0,
                    attributed_s=self.attributed.get(name, 0.0),
                    functions=self._functions_in_other() if name == OTHER.name else [],
                    what=added.get(name, ""),
                )
            )
        return phases

    def _functions_in_other(self) -> list[LineTime]:
        """The functions that take the most of the code that no call claims, where that is a sizeable part of a step."""
        share = self.share(OTHER.name)
        if share < NAMED_OTHER:
            return []
        return self.blame.functions(self.blame.in_phase(*HOST_PLACES), share)


def build(measurement: Measurement) -> HostFeatures:
    """Place the samples, split the time that no seam claimed by what they show, and take other programs' part out."""
    blame = Blame(measurement)
    attributed: dict[str, float] = {phase.name: phase.mean_s for phase in measurement.phases}
    _expose_collectives(measurement, attributed)
    places = _split_other(measurement, blame, attributed)
    seconds = without_neighbours(measurement, attributed)
    # What is scaled down is `other` as a whole, and its places with it.
    factor = seconds.get(OTHER.name, 0.0) / max(attributed.get(OTHER.name, 0.0), 1e-12)
    if seconds != attributed:
        places = {place: place_s * factor for place, place_s in places.items()}
    in_forward = blame.in_phase(FORWARD.name)
    python = count(placed for placed in in_forward if is_plain_python(placed))
    python_s = seconds.get(FORWARD.name, 0.0) * python / count(in_forward) if in_forward else 0.0
    return HostFeatures(measurement, blame, attributed, seconds, places, python_s, set_up_holder(measurement))


def _model_phases(measurement: Measurement) -> list[PhaseName]:
    return [phase.name for phase in measurement.plugins.all_phases if phase.model]


def _expose_collectives(measurement: Measurement, attributed: dict[str, float]) -> None:
    """Move the time that backward is blocked to `comm`: gradient exchange that the computation does not hide."""
    backward = measurement.phase(BACKWARD.name)
    if measurement.has_peers and backward is not None:
        exposed = min(backward.blocked_s, attributed[BACKWARD.name])
        attributed[BACKWARD.name] -= exposed
        attributed[COMM.name] = attributed.get(COMM.name, 0.0) + exposed


def _split_other(measurement: Measurement, blame: Blame, attributed: dict[str, float]) -> dict[str, float]:
    """Move what the samples claim from `other` to its phase, in ``attributed``; the rest by place is returned."""
    other = attributed.get(OTHER.name, 0.0)
    if blame.total < FEWEST_SAMPLES:
        return {OTHER.name: other}
    a_sample = measurement.step.mean / blame.total
    claimed_by_samples = [*blame.serving, FORWARD.name, VALIDATION.name]
    claims = {name: _claim(blame.in_phase(name), attributed.get(name, 0.0), a_sample) for name in claimed_by_samples}
    claims |= {place: count(blame.in_phase(place)) * a_sample for place in HOST_PLACES}
    total = sum(claims.values())
    scale = other / total if total else 0.0
    for name in claimed_by_samples:
        claimed = claims.pop(name) * scale
        # A fraction of a per cent is a stray sample, not a phase.
        if claimed > STRAY * measurement.step.mean:
            attributed[name] = attributed.get(name, 0.0) + claimed
            attributed[OTHER.name] = attributed.get(OTHER.name, 0.0) - claimed
    attributed[OTHER.name] = max(0.0, attributed.get(OTHER.name, 0.0))
    left = sum(claims.values())
    if not left:
        return {OTHER.name: attributed[OTHER.name]}
    return {place: attributed[OTHER.name] * claim / left for place, claim in claims.items() if claim}


def _claim(samples: Sequence[Placed], timed_s: float, a_sample: float) -> float:
    """Seconds a step of a phase that no seam timed.

    A timer knows more than the samples inside it, so that those count only where they are more than chance explains:
    then the program has calls that it does not see. Where no stack tells, it is what goes beyond the timed seconds.
    """
    inside = count(placed for placed in samples if placed.in_seam)
    outside = count(samples) - inside
    beyond = inside * a_sample - timed_s
    if not inside:
        return max(0.0, outside * a_sample - timed_s)
    return outside * a_sample + (beyond if beyond > CHANCE * math.sqrt(inside) * a_sample else 0.0)


def is_plain_python(placed: Placed) -> bool:
    """Whether a sample is in a loop of the user's own Python, with no library below it."""
    if not placed.program or placed.program[-1][0] != placed.sample.frames[-1]:
        return False
    frame, _ = placed.program[-1]
    return source.is_python_loop(frame.file, frame.line)


def network_share(features: HostFeatures, name: PhaseName) -> float:
    """Share of a phase that was inside socket calls."""
    phase = features.measurement.phase(name)
    return phase.network_s / phase.mean_s if phase and phase.mean_s else 0.0
