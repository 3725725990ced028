"""What the tests of the patterns share: an ordinary step, and what holds of every finding."""

from __future__ import annotations

from factory import features

from unstall.diagnose import findings as ranking
from unstall.diagnose.features import build
from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.patterns.base import Features
from unstall.records.measurements import LoaderMeasurement
from unstall.records.model import ModuleMeasurement
from unstall.records.run import Utilization

TRAINING = {"data_wait": 0.001, "forward": 0.03, "backward": 0.06, "optimizer": 0.008, "other": 0.001}
"""An ordinary step with nothing in its way."""


def match(pattern, phases=None, **more):
    return all_patterns()[pattern].on_host(features(phases or TRAINING, **more))


def host_findings(measurement):
    """The findings of a run without a device."""
    return ranking.findings(Features(host=build(measurement)), Utilization())


def device_findings(features):
    """The findings of a trace alone."""
    return ranking.findings(Features(device=features), Utilization())


def check(finding, pattern, *, headroom=1.2):
    """What holds of every finding."""
    assert finding is not None
    assert finding.pattern == pattern
    assert finding.headroom >= headroom
    assert finding.evidence and all(line and "\n" not in line for line in finding.evidence)
    assert finding.advice and all(line and "\n" not in line for line in finding.advice)
    assert finding.headroom_known_by in ("estimated", "predicted")
    if finding.culprit is not None:
        assert 0 <= finding.culprit.share <= 1
    return finding


def training_sites(code):
    return [
        code.site("~data.iter", "main", "# ask"),
        code.site("~forward", "main", "# model"),
        code.site("~backward", "main", "# backward"),
        code.site("~optimizer", "main", "# optimizer"),
    ]


def loader(**more):
    """Two workers that make a batch in a little more than a step."""
    values = {"workers": 2, "batch_size": 32, "batches_per_step": 1.0, "service_s": 0.16, "service_cpu_s": 0.15}
    return LoaderMeasurement(**{**values, **more})


def module(name, type_name, self_s, file="net.py"):
    """One call of a module in a step, with nothing inside."""
    return ModuleMeasurement(name, type_name, file, 1, 1.0, self_s, self_s, 0)
