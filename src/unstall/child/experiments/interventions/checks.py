"""Checks that help to find errors are left out: autograd's anomaly detection, those of torch.distributions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from unstall.child.experiments.interventions.base import Intervention, Specification

if TYPE_CHECKING:
    from unstall.records.measurements import Measurement
    from unstall.records.report import Report


class ChecksIntervention(Intervention):
    """Without arguments. What a program asks for by ``validate_args=True`` is checked all the same."""

    name = component = "checks"
    title = "checks turned off"
    proves = "debugging-bound"
    anomaly: _AnomalyDetection | None = None
    """While it is off."""
    distribution: Any = None
    """The base class of all distributions, while they check nothing."""

    @classmethod
    def share(cls, report: Report, measurement: Measurement) -> float:
        """That of the finding: checks are in no phase of their own."""
        return next((finding.share or 0.0 for finding in report.findings if finding.pattern == cls.proves), 0.0)

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """None: the pipeline model does not know them."""
        return None

    def on(self) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and self.engine.in_main:
            self.anomaly = _AnomalyDetection(torch)
            self.anomaly.leave_out()
        distributions = sys.modules.get("torch.distributions.distribution")
        if distributions is not None and distributions.Distribution._validate_args:
            self.distribution = distributions.Distribution
            self.distribution.set_default_validate_args(False)

    def off(self) -> None:
        if self.anomaly is not None:
            self.anomaly.put_back()
            self.anomaly = None
        if self.distribution is not None:
            self.distribution.set_default_validate_args(True)
            self.distribution = None


class _AnomalyDetection:
    """Autograd's switch, which tells the program that it is as the program has set it, and is off."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.set = torch.set_anomaly_enabled
        self.is_on, self.checks_nan = torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled
        self.wanted = self.is_on(), self.checks_nan()

    def leave_out(self) -> None:
        self.torch.set_anomaly_enabled = self.note
        self.torch.is_anomaly_enabled = lambda: self.wanted[0]
        self.torch.is_anomaly_check_nan_enabled = lambda: self.wanted[1]
        self.set(False, self.wanted[1])

    def note(self, enabled: bool, check_nan: bool = True) -> None:
        """What the program sets meanwhile is in force afterwards."""
        self.wanted = bool(enabled), bool(check_nan)

    def put_back(self) -> None:
        self.torch.set_anomaly_enabled = self.set
        self.torch.is_anomaly_enabled, self.torch.is_anomaly_check_nan_enabled = self.is_on, self.checks_nan
        self.set(*self.wanted)


INTERVENTION = ChecksIntervention
