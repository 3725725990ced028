"""sync-bound: the host stops for the device again and again (``.item()``, ``.cpu()``, shapes known only on the GPU)."""

from __future__ import annotations

from unstall.diagnose.blame import culprit, line_culprit
from unstall.diagnose.features import Features
from unstall.records.report import Finding
from unstall.text.units import percent, seconds


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    sync_s = features.seconds.get("sync", 0.0)
    headroom = features.headroom_without(sync_s)
    if headroom < 1.05:
        return None
    sites = [site for site in features.measurement.sites if site.seam.startswith("~sync.")]
    name = sites[0].seam.removeprefix("~sync.") if sites else "item"
    cause = "shape" if name == "nonzero" else "copy" if name in ("cpu", "numpy", "tolist") else "item"
    blamed = culprit(features.blame.in_phase("sync"), features.blame.total, "main")
    if blamed is None and sites:
        blamed = line_culprit(sites[0], share=features.share("sync"))
    return Finding(
        pattern="sync-bound",
        cause=cause,
        culprit=blamed,
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="medium",
        evidence=[
            f"{percent(features.share('sync'))} of a step, {seconds(sync_s)}, "
            f"the host waits for the device in .{name}()"
        ],
        advice=["read values back every N steps, not each step; keep running sums on the device"],
    )
