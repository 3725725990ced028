"""Recorded runs as a browser is to show them: one with everything in it, one full of hostile strings, one endless."""

import numpy as np

from unstall.records import report as r
from unstall.records.archive import Archive, StepSeries
from unstall.records.experiments import NotMeasured
from unstall.records.measurements import Measurement
from unstall.records.observations import Frame, MachinePoint, ResourcePoint, StackSample
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization
from unstall.records.trace import TraceChange, TraceFacts, TraceRank, TraceStep, TraceTime
from unstall.records.what_if import Knob, Outcome, Sliders

BREAKOUTS = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "\"'><img src=x onerror='window.hacked = 3'>",
    "<!--<script>",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "javascript:window.hacked = 4",
    "{{constructor.constructor('window.hacked = 5')()}}",
    "\u202egnp.exe",
)
SHARES = {"data_wait": 0.6, "forward": 0.2, "backward": 0.15, "other": 0.05}


def step_series(durations, *, warmup=5):
    """Steps of these seconds, one after the other, with the same phases each."""
    ends = 100.0 + np.concatenate([[0.0], np.cumsum(durations)])
    measured = np.ones(len(durations), "u1")
    measured[:warmup] = 0
    gap = np.zeros(len(durations), "u1")
    gap[len(durations) // 2] = 1
    return StepSeries(
        boundaries_f8=ends.astype("<f8").tobytes(),
        phases_f4={name: (durations * share).astype("<f4").tobytes() for name, share in SHARES.items()},
        measured_u1=measured.tobytes(),
        gap_u1=gap.tobytes(),
    )


def stacks(names=("train", "load", "decode")):
    """Of the main process (pid 7) and a worker (pid 8)."""
    frames = tuple(Frame(name, "/home/me/train.py", 10 * i + 10) for i, name in enumerate(names))
    library = Frame("forward", "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", 116)
    return [
        StackSample(7, "MainThread", frames, 60),
        StackSample(7, "MainThread", (frames[0], library), 30),
        StackSample(8, "MainThread", frames[1:], 90),
    ]


def resources(seconds=20):
    points = []
    for i in range(4 * seconds):
        t = 100.0 + i / 4
        points.append(ResourcePoint(t, 7, i / 5, i / 20, 400_000_000 + 1_000_000 * i, 3_000_000 * i))
        points.append(ResourcePoint(t, 8, i / 5, 0.0, 200_000_000))
    return points


def machine(seconds=20):
    return [MachinePoint(100 + i / 4, i / 2.2, (0.3 + 0.005 * i,), (10**9,)) for i in range(4 * seconds)]


def report(steps=400, text="the transform takes 60 % of the step", name="decode", **more):
    """A report in which ``text`` stands wherever a sentence can, and ``name`` wherever a name can."""
    culprit = r.Culprit(function=name, file=f"/home/me/{name}.py", line=12, share=0.6, code=text, via=name)
    finding = r.Finding(
        pattern="input-bound",
        cause=name,
        headroom=2.5,
        headroom_known_by="measured",
        confidence="high",
        evidence=[text],
        advice=[text],
        culprit=culprit,
    )
    second = r.Finding(
        pattern="callback-bound",
        headroom=1.1,
        headroom_known_by="estimated",
        confidence="medium",
        evidence=[text],
        advice=[text],
        culprit=culprit,
    )
    values = {
        "kind": "run",
        "run": RunInfo(
            id="20260101-000000-abcdef",
            command=["train.py", text],
            started="2026-01-01T00:00:00Z",
            duration_s=20.0,
            steps=steps,
            exit_code=0,
            environment={"cpu_count": 2, "gpus": [], "torch": text},
            notes=[text],
        ),
        "throughput": Throughput(steps_per_s=20.0, step_s=StepTime(mean=0.05, p50=0.05, p95=0.06)),
        "utilization": Utilization(cpu=0.5),
        "phases": [r.PhaseTime(name=phase, share=share, mean_s=0.05 * share) for phase, share in SHARES.items()],
        "verdict": finding,
        "findings": [finding, second],
        "ceilings": [
            r.Ceiling(component=name, steps_per_s=50.0, known_by="measured", ci95=(45.0, 55.0), gap=0.6),
            r.Ceiling(component="without log", steps_per_s=900.0, known_by="measured", gap=0.0),
            r.Ceiling(component="validation", steps_per_s=21.0, known_by="estimated", gap=0.05),
        ],
        "experiments": [
            r.ReportedExperiment(
                name=name, intervention=text, ratio=2.4, ci95=(2.2, 2.6), segments=8, predicted_ratio=2.1
            ),
            r.ReportedExperiment(
                name=f"{name} +20%", intervention="delay", ratio=0.9, ci95=(0.86, 0.94), elasticity=0.58
            ),
            r.ReportedExperiment(
                name="backward", intervention="free", ratio=1.1, ci95=(0.2, 1e6), conclusive=False, notes=[text]
            ),
        ],
        "study": study(text, name),
        "remedies": [
            r.TriedRemedy(name=name, exactness="exact", kept=True, speedup=2.1, ci95=(1.9, 2.3), equivalent=True)
        ],
        "patch": f"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-{text}\n+fast()\n",
        "hotspots": [r.Hotspot(function=name, file=f"/home/me/{name}.py", line=3, share=0.4, where="main", via=name)],
        "modules": [r.ModuleTime(name=name, type=name, calls_per_step=1, forward_s=0.01, self_s=0.01)],
        "spans": [r.SpanTime(name=name, count=4, total_s=1.0, mean_s=0.25)],
        "callbacks": [
            r.CallbackTime(
                framework=name,
                callback=name,
                event=text,
                calls=4,
                total_s=1.0,
                mean_s=0.25,
                share=0.3,
                file=f"/home/me/{name}.py",
                line=3,
            )
        ],
    }
    return r.Report(**values | more)


def study(text, name):
    """What three experiments say together, with ``text`` and ``name`` wherever they can stand."""
    return r.Study(
        base_s=0.05,
        elasticity_sum=0.97,
        elasticity_ci95=(0.9, 1.04),
        elasticity_says=text,
        waiting_s=0.02,
        taken_s=0.01,
        disagreements=[text],
        deeper=[text],
        failures=[NotMeasured(name=name, intervention=text, why=text)],
        untried=[name, "forward +20%"],
        sandbox=text,
        runs=2,
    )


def trace(name="aten::mm"):
    """Three steps of a device that computes most of the time."""
    uses = {"compute": 0.7, "communication": 0.1, "idle_host": 0.2}
    times = [TraceTime(name=name, share=0.5, mean_s=0.01, count=8.0, detail=name)]
    return TraceFacts(
        files=[name],
        source="kineto",
        devices=[name],
        marked_steps=True,
        device=uses,
        queue={},
        kernels={"per_step": 100.0, "small_share": 0.4},
        step_variation=0.1,
        replay_error=0.01,
        replay_steps=3,
        critical_path={},
        what_ifs=[TraceChange(what_if=name, gain=1.4, step_s=0.02)],
        steps=[TraceStep(number=i, step_s=0.03, shares=uses, queue_depth=[]) for i in range(3)],
        operators=times,
        top_kernels=times,
        waits=times,
        copies=times,
        ranks=[TraceRank(rank=0, file=name, step_s=0.03, busy=0.8, communication=0.1, waits=0.1, late=0.0)],
    )


def archive(durations=None, **more):
    """A run with steps, stacks and resources; ``more`` goes to :func:`report`."""
    if durations is None:
        durations = 0.05 + 0.01 * np.sin(np.arange(400) / 9)
    name = more.get("name")
    return Archive(
        report=report(steps=len(durations), **more),
        began=100.0,
        ended=120.0,
        measurement=Measurement(
            kind="optimizer",
            steps=len(durations),
            warmup=5,
            total_steps=len(durations),
            step=StepTime(mean=0.05, p50=0.05, p95=0.06),
            phases=[],
            cores=2.0,
            main_pid=7,
            worker_pids=frozenset({8}),
        ),
        steps=step_series(durations),
        resources=resources(),
        machine=machine(),
        stacks=stacks((name, name, name) if name else ("train", "load", "decode")),
    )


def sliders(name="decode"):
    """Twice as fast with each worker, twice as fast again if ``name`` were free."""
    knobs = [
        Knob("workers", "loader workers", (0.0, 1.0, 2.0), 0),
        Knob(name, f"time of {name}", (1.0, 0.0), 0),
    ]
    steps = [0.05 / 2**workers / factor for workers in range(3) for factor in (1, 2)]
    return Sliders(knobs, [Outcome(s, 0.9 * s, 1.1 * s, name) for s in steps])
