"""transfer-bound: copies between host and device stand in the step's way."""

from __future__ import annotations

from unstall.diagnose.blame import culprit
from unstall.diagnose.features import Features
from unstall.records.report import Finding
from unstall.text.units import percent, seconds


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    transfer_s = features.seconds.get("transfer", 0.0)
    headroom = features.headroom_without(transfer_s)
    if headroom < 1.05:
        return None
    loader = features.measurement.loader
    pageable = loader is not None and not loader.pin_memory
    advice = ["pin_memory=True in the DataLoader, and .to(device, non_blocking=True)"] if pageable else []
    return Finding(
        pattern="transfer-bound",
        cause="pageable" if pageable else "blocking",
        culprit=culprit(features.blame.in_phase("transfer"), features.blame.total, "main"),
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="medium",
        evidence=[f"{percent(features.share('transfer'))} of a step, {seconds(transfer_s)}, copies data to the device"],
        advice=[
            *advice,
            "copy the next batch while this one computes; send smaller types (uint8) and convert on the device",
        ],
    )
