"""host-bound: the main process computes in Python or NumPy between the model's calls."""

from __future__ import annotations

from unstall.diagnose.blame import Placed, culprit
from unstall.diagnose.features import HOST, Features, is_plain_python
from unstall.records.report import Finding
from unstall.text.units import percent, seconds

_CAUSES = {"before": "preprocess", "after": "postprocess"}
_PLACES = {
    "before": "before the model is called",
    "between": "between the model's call and backward",
    "after": "after the model's call",
    "late": "after the step's training is done",
    "other": "outside any known call",
}
_ADVICE = {
    "gc": "collect less: call gc.freeze() after set-up, raise gc.set_threshold, and no gc.collect() in the step",
    "preprocess": "move it into the dataset, so that loader workers do it ahead, or use whole-array operations",
    "postprocess": "use whole-batch tensor operations instead of Python loops, or do it in another process",
    "python": "replace the Python loop by whole-tensor operations",
}


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    collecting = features.measurement.gc_s
    in_model = features.python_in_forward > features.seconds.get("other", 0.0)
    # What it takes to act in one environment at a time is environment-bound: a vector of them would share it.
    host_s = features.seconds.get("other", 0.0) - features.acting_s + features.python_in_forward
    by_collector = collecting > 0.5 * max(host_s, 1e-12) and collecting > 0.05 * features.step_s
    taken_s = max(host_s, collecting) if by_collector else host_s
    headroom = features.headroom_without(taken_s)
    if headroom < 1.05:
        return None
    place = max(features.host, key=lambda name: features.host[name], default="other")
    cause = "gc" if by_collector else "python" if in_model else _CAUSES.get(place, "python")
    if in_model:
        samples = [placed for placed in features.blame.in_phase("forward") if is_plain_python(placed)]
    else:
        samples = _samples(features, place, by_collector)
    evidence = [
        f"{percent(taken_s / features.step_s)} of a step, {seconds(taken_s)}, is Python and NumPy of the main process"
    ]
    if by_collector:
        evidence.append(f"garbage collection takes {seconds(collecting)} a step")
    elif in_model:
        evidence.append(f"{seconds(features.python_in_forward)} of it in a Python loop of a module's forward")
    else:
        part = features.host.get(place, 0.0)
        evidence.append(f"{seconds(part)} of it {_PLACES[place]}")
    return Finding(
        pattern="host-bound",
        cause=cause,
        culprit=culprit(samples, features.blame.total, "main"),
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="high",
        evidence=evidence,
        advice=[_ADVICE[cause]],
    )


def _samples(features: Features, place: str, by_collector: bool) -> list[Placed]:
    samples = features.blame.in_phase(place)
    if by_collector or not samples:
        samples = features.blame.in_phase(*HOST)
    return samples or features.blame.main
