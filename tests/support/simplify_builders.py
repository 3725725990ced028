"""Real records for the tests of the experiments, and a program in virtual time to run them on."""

import os
from pathlib import Path

import numpy as np

from unstall.benchmark.measure import LoopMeasurement
from unstall.benchmark.reader import RECORD, ProcessRecording
from unstall.benchmark.resources import ResourceMonitor
from unstall.benchmark.steps import Loop
from unstall.child.experiments.interventions.base import key_of
from unstall.child.layout import MAIN
from unstall.records.measurements import Measurement
from unstall.records.model import ModelMeasurement
from unstall.records.observations import Observation
from unstall.records.report import Culprit, Finding, PhaseTime, Report
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization
from unstall.records.vocabulary import PHASE_NAMES
from unstall.simplify.abba import Pace
from unstall.simplify.experiment import Experiment, ExperimentResult
from unstall.simplify.program_starter import FirstRun
from unstall.simplify.segment import Segment

PACE = Pace(step_s=0.1, steps=4, seconds=0.5, settle_steps=1, settle_s=0.0, cores=2)


def make_finding(pattern="callback-bound", headroom=2.0, function=None, *, where="main", share=0.5):
    culprit = Culprit(function=function, file="train.py", line=3, share=share, where=where) if function else None
    return Finding(
        pattern=pattern,
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="medium",
        evidence=["seen"],
        advice=["do"],
        culprit=culprit,
    )


def make_report(*findings, phases=None, hotspots=()):
    run = RunInfo(id="1", command=["train.py"], started="", duration_s=1, steps=9, exit_code=0, environment={})
    shares = {"forward": 1.0} if phases is None else phases
    return Report(
        kind="run",
        run=run,
        throughput=Throughput(steps_per_s=10.0),
        utilization=Utilization(),
        phases=[PhaseTime(name=name, share=share, mean_s=share / 10) for name, share in shares.items()],
        verdict=findings[0],
        findings=list(findings),
        hotspots=list(hotspots),
    )


def make_measurement(*, loader=None, sites=(), threads=2, step_s=0.1, device="cpu"):
    return Measurement(
        kind="optimizer",
        steps=50,
        warmup=3,
        total_steps=60,
        step=StepTime(step_s, step_s, step_s),
        phases=[],
        cores=4,
        main_pid=1,
        loader=loader,
        model=ModelMeasurement(root="Net", file="train.py", threads=threads, device=device),
        sites=list(sites),
    )


def make_measured(measurement, *, gaps=(), steps=60):
    """A loop of equal steps; ``gaps``: the steps that hold an epoch's end."""
    step_s = measurement.step.mean
    starts = np.arange(steps) * step_s
    zeros = np.zeros((steps, len(PHASE_NAMES)))
    phases = zeros.copy()
    phases[:, PHASE_NAMES.index("forward")] = step_s
    loop = Loop(
        kind=measurement.kind,
        starts=starts,
        ends=starts + step_s,
        phases=phases,
        blocked=zeros,
        cpu=zeros,
        network=zeros,
        network_bytes=zeros,
        at_boundary=np.isin(np.arange(steps), gaps),
        validation_calls=np.zeros(steps, int),
    )
    process = ProcessRecording(1, 0, np.empty(0, RECORD), {}, {})
    return LoopMeasurement(measurement, loop, np.ones(steps, bool), process, [process])


def make_first_run(report, measurement=None, tmp_path=Path("nowhere")):
    measured = make_measured(measurement) if measurement is not None else None
    return FirstRun(report, measured, Observation(0.0), tmp_path / "output.txt")


def make_result(experiment, ratio, *, noise=0.01, blocks=5):
    """A result of alternating noise around a ratio."""
    signs = [1, -1] * (blocks // 2) + [0] * (blocks % 2)
    return ExperimentResult(experiment, [np.log(ratio) + noise * sign for sign in signs], base_s=[0.1] * blocks)


def result_of(component, ratio, *, noise=0.01, intervention="stub", **more):
    """A result of an experiment by hand in which a component was free."""
    arm = ({"kind": intervention, "name": component},)
    return make_result(
        Experiment(f"without {component}", intervention, arm=arm, component=component, **more), ratio, noise=noise
    )


def make_segment(step_s, *, steps=5, began=0.0, others=0.0, calls=1.0, real_calls=0):
    durations = np.full(steps, step_s)
    return Segment(
        durations, np.zeros(steps, bool), {"forward": calls}, began, began + steps * step_s, others, real_calls
    )


def make_recording(steps, step_s, *, begin=0.0, pid=100):
    """A loop whose optimizer takes a tenth of each step."""
    starts = [round((begin + (number + 0.9) * step_s) * 1e9) for number in range(steps)]
    duration = round(step_s * 1e8)
    rows = [(start, duration, duration, 0, 0, 1, pid, 1, 0, MAIN) for start in starts]
    return ProcessRecording(pid, 0, np.array(rows, RECORD), {1: "~optimizer"}, {})


class VirtualClock:
    """Monotonic seconds that pass when a program runs."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class VirtualSession:
    """What is seen of a virtual program from outside: nothing of other programs."""

    def __init__(self):
        self.main, self.taps = None, {}
        self.resources = ResourceMonitor(os.getpid())


class VirtualProcess:
    """A controlled process whose step is the sum of its parts; what an intervention does to them is known.

    ``parts``: seconds by name, those of functions and of kinds of work. ``problems``: what a stub of a function says
    instead of answering. ``lasts_s``: after so many seconds the program ends. ``answering_s``: seconds of a step that
    a stub takes to answer.
    """

    def __init__(
        self,
        clock,
        parts,
        *,
        noise=0.01,
        problems=None,
        lasts_s=np.inf,
        error=None,
        factor=1.0,
        seed=0,
        answering_s=0.0,
    ):
        self.clock, self.parts, self.noise, self.problems = clock, parts, noise, problems or {}
        self.answering_s = answering_s
        self.ends, self.error, self.factor = clock() + lasts_s, error, factor
        self.random = np.random.default_rng(seed)
        self.in_force, self.emitted, self.log = [], [], []
        self.recording, self.session = Path("rec-1.bin"), VirtualSession()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.end()

    def warm_up(self, steps, seconds):
        self._pass(seconds)

    def switch(self, interventions):
        for spec in self.in_force if self.answering_s else ():
            self.emitted.append(
                {"key": key_of(spec), "what": "answered", "seconds": 10 * self.answering_s, "steps": 10}
            )
        self.in_force = interventions
        for spec in interventions:
            name = spec.get("name")
            if name in self.problems:
                self._emit(spec, "problem", self.problems[name])
            elif name in self.parts:
                self._emit(spec, "found", f"train.py:{[*self.parts].index(name)}")

    def settle(self, steps, seconds, step_s):
        self._pass(steps * step_s + seconds)

    def run(self, steps, seconds, step_s):
        self.log.append([spec["kind"] for spec in self.in_force])
        mean = self.step_s() * np.exp(self.random.normal(0, self.noise))
        count = max(steps, round(seconds / mean))
        self._pass(count * mean)
        return make_segment(mean, steps=count, began=self.clock() - count * mean)

    def step_s(self):
        parts = dict(self.parts)
        for spec in self.in_force:
            name = spec.get("name", {"cached": "data"}.get(spec["kind"], spec["kind"]))
            parts[name] = parts.get(name, 0.0) * (1 + spec["share"] if spec["kind"] == "delay" else 0)
        return (sum(parts.values()) + self.answering_s * bool(self.in_force)) * self.factor

    def facts(self, kind):
        return [fact for fact in self.emitted if kind == "intervention"]

    def pause(self):
        self.log.append("pause")

    def resume(self):
        self.log.append("resume")

    def end(self):
        self.log.append("end")

    def _emit(self, spec, what, text):
        self.emitted.append({"key": key_of(spec), "what": what, "text": text})

    def _pass(self, seconds):
        self.clock.now += seconds
        if self.clock() > self.ends:
            raise self.error


class VirtualStarter:
    """Starts virtual processes of one program. ``processes``: a function that makes the next one."""

    def __init__(self, clock, first, make_process, *, refusals=None):
        self.clock, self.first, self.make_process = clock, first, make_process
        self.refusals = refusals or {}
        self.started, self.processes, self.settings = 0, [], []

    def watch(self):
        self.started += 1
        self.clock.now += 5.0
        return self.first

    def wait(self, seconds):
        """No signal has come."""

    def refusal(self, settings):
        return next((why for name, why in self.refusals.items() if name in settings), None)

    def start(self, kind, settings, *, is_second):
        self.started += 1
        self.settings.append((settings, is_second))
        self.processes.append(self.make_process(settings))
        return self.processes[-1]
