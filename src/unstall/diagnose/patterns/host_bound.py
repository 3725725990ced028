"""host-bound: the main process computes between the model's calls, in Python, NumPy or tensor operators.

On a device: it is idle while the host computes something itself, with hardly any call to the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unstall.diagnose.features import HostFeatures, is_plain_python
from unstall.diagnose.own_operators import own_operators
from unstall.diagnose.own_threads import of_other_work
from unstall.diagnose.patterns.base import BY_REWRITING, Pattern, UsualRemedy, name_of, of_step, part
from unstall.diagnose.placing import Placed
from unstall.diagnose.positions import AFTER_MODEL, AFTER_TRAINING, BEFORE_BACKWARD, BEFORE_MODEL, HOST_PLACES
from unstall.diagnose.thresholds import COLLECTING, HOST_SHARE, MOST, SEEN
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import FORWARD, IDLE, OTHER, VALIDATION
from unstall.text.units import percent, seconds
from unstall.threshold import Range
from unstall.trace import intervals
from unstall.trace.blame import longest_function
from unstall.trace.features import TraceFeatures
from unstall.trace.metrics import TimelineMetrics
from unstall.trace.phrases import counted, ns
from unstall.trace.thresholds import HOST_GAP_NS

_CAUSES = {BEFORE_MODEL: "preprocess", AFTER_MODEL: "postprocess"}
_PLACES = {
    BEFORE_MODEL: "before the model is called",
    BEFORE_BACKWARD: "between the model's call and backward",
    AFTER_MODEL: "after the model's call",
    AFTER_TRAINING: "after the step's training is done",
    OTHER.name: "outside any known call",
}
_ADVICE = {
    "gc": "collect less: gc.freeze() after set-up, a higher gc.set_threshold, no gc.collect() in the step",
    "preprocess": "move it into the dataset, so that loader workers do it in advance, or use whole-array operations",
    "postprocess": "use whole-batch tensor operations instead of Python loops, or do it in another process",
    "operators": (
        "ask less of these operators: fewer numbers, not in every step, along the last dimension of a contiguous "
        "tensor, or fused by torch.compile"
    ),
    "python": "use whole-tensor operations instead of Python loops, or do it less often",
}
_BEFORE_A_REQUEST = "use whole-array operations, or keep what requests have in common"
"""Instead of a dataset, which a server has none of."""


class HostBound(Pattern):
    """The program's own Python holds up the step."""

    name = "host-bound"
    brief = "Python, NumPy or tensor operators compute in the loop while the model waits"
    doing = (
        (OTHER.name, "runs the program's own code between the calls of the model"),
        (VALIDATION.name, "validates"),
    )
    device_uses = ("host",)
    causes = ("postprocess", "preprocess", "gc", "operators", "python")
    advice = "move it to array operations, out of the step, or into loader workers"
    by_hand = (
        ("operators", "compute it on fewer numbers, less often, or by a cheaper operator"),
        (
            None,
            "use array operations, move loop-invariant work out of the loop, and"
            " give any() and all() a generator instead of a list",
        ),
    )
    calibration = ((None, None, Range(0.6, 1.0, 1.6, "zoo: 0.7 to 1.4 of three, a fourth 0.2; held out 0.7")),)
    usual_remedies = (
        ("gc", UsualRemedy("collecting less", Range(0.0, 0.05, 0.3, "zoo: 0; young objects are still collected"))),
        ("operators", UsualRemedy("cheaper operators", Range(0.02, 0.4, 0.9, "they compute what they are asked for"))),
        (None, UsualRemedy("array operations", Range(0.0, 0.08, 0.6, BY_REWRITING))),
    )

    def takes_caches(self, host: HostFeatures) -> bool:
        """Where it is not the Python code of the model's own modules."""
        return not _in_model(host)

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time that no seam claims, that modules spend in plain Python, or that the collector takes."""
        collecting = host.measurement.gc_s
        in_model = _in_model(host)
        # What it takes to act in one environment at a time is environment-bound: a vector of them would share it.
        host_s = host.phase_s(OTHER.name) - host.acting_s + host.python_in_forward
        by_collector = collecting > MOST * max(host_s, 1e-12) and collecting > COLLECTING * host.step_s
        taken_s = max(host_s, collecting) if by_collector else host_s
        lost_s, more_evidence, more_advice = of_other_work(host, taken_s)
        headroom = host.headroom_without(taken_s + lost_s)
        if headroom < SEEN:
            return None
        if by_collector:
            work = _collecting(host, in_model)
        else:
            work = _in_forward(host) if in_model else _between_calls(host, host_s)
        share = min(1.0, taken_s / host.step_s)
        return self.finding(
            cause=work.cause,
            culprit=host.blame.main_culprit(work.samples),
            share=share,
            headroom=headroom,
            evidence=[f"{of_step(share, taken_s)}, is {work.what}", work.where, *more_evidence],
            advice=[_advice(host, work.cause), *more_advice],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """By the device's idle time in which the host launches nothing."""
        metrics = device.metrics
        share = device.shares["idle_host"]
        if share < HOST_SHARE:
            return None
        row, before_first, evidence = _longest(metrics)
        culprit_share = _share_in(metrics, row) if row >= 0 else share
        return self.finding(
            summary=f"the device is idle {percent(share)} of a step while the host does other work",
            cause="preprocess" if before_first else "python",
            culprit=metrics.blame.culprit(row, culprit_share, device.where),
            share=share,
            headroom=device.gain("host=0"),
            headroom_known_by="predicted",
            confidence=device.confidence(share),
            evidence=[
                f"{of_step(share, share * device.step_s)}, the device is idle, and the host launches nothing",
                *evidence,
            ],
            advice=[
                "move this work off the loop: into loader workers or another process, or onto the device",
                "prepare the next batch while the device works on this one",
            ],
        )

    def samples_of(self, finding: Finding, host: HostFeatures) -> list[Placed]:
        """Those between the calls of the model, where the time is there."""
        outside = finding.cause != "gc" and not host.python_in_forward
        return host.blame.in_phase(*HOST_PLACES) if outside else []

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the function that computes."""
        name = name_of(finding.culprit)
        what = "tensor operators" if finding.cause == "operators" else "Python code"
        return f"{part(finding)} goes into {name and f'{name}, '}{what} between the model's calls"


def _in_model(host: HostFeatures) -> bool:
    """Whether most of it is Python code of the model's modules."""
    return host.python_in_forward > host.phase_s(OTHER.name)


@dataclass(frozen=True)
class _Work:
    """What the main process does instead of the model."""

    cause: str
    samples: list[Placed]
    """Of it."""
    where: str
    what: str = "Python and NumPy code in the main process"


def _collecting(host: HostFeatures, in_model: bool) -> _Work:
    samples = _python_in_forward(host) if in_model else host.blame.in_phase(*HOST_PLACES) or host.blame.main
    return _Work("gc", samples, f"garbage collection takes {seconds(host.measurement.gc_s)} a step")


def _in_forward(host: HostFeatures) -> _Work:
    where = f"{seconds(host.python_in_forward)} of it in a Python loop of a module's forward"
    return _Work("python", _python_in_forward(host), where)


def _python_in_forward(host: HostFeatures) -> list[Placed]:
    return [placed for placed in host.blame.in_phase(FORWARD.name) if is_plain_python(placed)]


def _between_calls(host: HostFeatures, host_s: float) -> _Work:
    """At the place that most of it is at; ``host_s``: of all places, where none is known."""
    place = max(host.places, key=lambda name: host.places[name], default=OTHER.name)
    samples = host.blame.in_phase(place) or host.blame.in_phase(*HOST_PLACES) or host.blame.main
    where = f"{seconds(host.places.get(place, 0.0))} of it {_PLACES[place]}"
    own = own_operators(host, samples, host.places.get(place, host_s))
    cause = _CAUSES.get(place, "python")
    if own is None:
        return _Work(cause, samples, where)
    if own.are_large:
        what = f"the loop's own code, {seconds(own.seconds)} of it in tensor operators, {own.costliest} most"
        return _Work("operators", samples, where, what)
    return _Work(cause, samples, where, f"the loop's own code, which calls {own.calls:.0f} small tensor operators")


def _longest(metrics: TimelineMetrics) -> tuple[int, bool, list[str]]:
    """Of the gaps: the host row that fills the longest, whether that is before the first kernel, and evidence.

    The rank and the device that are looked at may have no such gap, though others have.
    """
    gaps = metrics.idle("host")
    lengths = gaps.end - gaps.start
    if not len(lengths):
        return -1, False, []
    longest = int(np.argmax(lengths))
    row = longest_function(metrics.timeline, int(gaps.start[longest]), int(gaps.end[longest]))
    first = bool(gaps.start[longest] <= metrics.windows.start_ns.min() + int(HOST_GAP_NS))
    evidence = (
        f"{counted(len(lengths) / len(metrics.windows), 'such gap')} a step, the longest {ns(float(lengths[longest]))}"
    )
    return row, first, [evidence + (", before the first kernel" if first else "")]


def _share_in(metrics: TimelineMetrics, row: int) -> float:
    """Share of the steps' time in such gaps while the main thread is in what the host row is an instance of."""
    host = metrics.timeline.host
    same = (host.name == host.name[row]) & (host.thread == host.thread[row])
    spans = intervals.union(host.start_ns[same], host.end_ns[same])
    return intervals.both(metrics.idle("host"), spans).total / metrics.windows.total_ns


def _advice(host: HostFeatures, cause: str) -> str:
    is_server = host.measurement.phase(IDLE.name) is not None
    return _BEFORE_A_REQUEST if cause == "preprocess" and is_server else _ADVICE[cause]


PATTERN = HostBound()
