"""sync-bound: the host stops for the device again and again (``.item()``, ``.cpu()``, shapes known only on the GPU).

Waiting alone is no harm: with a full queue, or at the end, the host has nothing better to do. It counts where the
device is idle because of it.
"""

from __future__ import annotations

import re

from unstall.child.seams import cuda
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, at, of_step, part
from unstall.diagnose.thresholds import IDLE_SYNC_SHARE, MOSTLY_COMPUTING, SEEN, SEEN_GAIN, WORTH
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import SYNC
from unstall.text.units import percent, seconds
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures
from unstall.trace.phrases import counted, ns
from unstall.trace.thresholds import TINY_COPY_BYTES
from unstall.trace.timeline import CopyKind
from unstall.trace.waiting import WaitSite

_SHAPE = re.compile(r"nonzero|unique|masked_select|\bindex(_put)?\b|\bwhere\b|repeat_interleave")
_ITEM = re.compile(r"item|local_scalar_dense|is_nonzero|equal|__bool__")


class SyncBound(Pattern):
    """Both sides are idle in turn."""

    name = "sync-bound"
    brief = "host and device wait for each other in turn"
    doing = ((SYNC.name, "waits for the device's results"),)
    device_uses = ("sync",)
    causes = ("item", "copy", "shape")
    phases = (SYNC.name,)
    advice = "read values back every N steps, not each step; keep running sums on the device"
    by_hand = (
        (
            None,
            "keep values on the device until they are needed: running += loss.detach(), and item() every N steps",
        ),
    )
    usual_remedies = (
        (None, UsualRemedy("fewer synchronisations", Range(0.0, 0.2, 0.8, "the device's work is waited for"))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time in calls that wait for the device."""
        sync_s = host.phase_s(SYNC.name)
        headroom = host.headroom_without(sync_s)
        if headroom < SEEN:
            return None
        sites = host.sites(cuda.SYNC)
        name = cuda.SYNC.member(sites[0].seam) if sites else "item"
        share = host.share(SYNC.name)
        blamed = host.blame.main_culprit(host.blame.in_phase(SYNC.name)) or host.caller(cuda.SYNC, share=share)
        return self.finding(
            cause="shape" if name == "nonzero" else "copy" if name in ("cpu", "numpy", "tolist") else "item",
            culprit=blamed,
            share=share,
            phases=self.phases,
            headroom=headroom,
            confidence="medium",
            evidence=[f"{of_step(share, sync_s)}, the host waits for the device in .{name}()"],
            advice=[self.advice],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """By the device's idle time while the host waits for it."""
        metrics, shares = device.metrics, device.shares
        sites = metrics.waits
        if not sites or shares["blocked"] < IDLE_SYNC_SHARE:
            return None
        idle = shares["idle_sync"]
        headroom, known_by = device.headroom("sync=0", idle)
        if idle < IDLE_SYNC_SHARE and headroom < SEEN_GAIN:
            return None
        steps = len(metrics.windows)
        worst = sites[0]
        blocked = percent(shares["blocked"])
        evidence = [
            f"the host waits for the device {blocked} of a step, "
            f"{seconds(shares['blocked'] * device.step_s)}; for {percent(idle)} the device is idle meanwhile",
            f"{worst.operator or worst.call} waits {counted(worst.count / steps, 'time')} a step, "
            f"{ns(worst.blocked_ns / steps)} a step in {worst.call}",
            *_tiny_copies(device),
        ]
        if known_by == "estimated":
            evidence.append(
                "the replay cannot confirm the gain: the stream waits for something that the trace does not show"
            )
        return self.finding(
            summary=f"the host waits for the device {blocked} of a step, and the device then for the host",
            cause=_cause(worst),
            culprit=metrics.blame.culprit(worst.row, worst.blocked_ns / metrics.windows.total_ns, device.where),
            share=shares["blocked"],
            headroom=headroom,
            headroom_known_by=known_by,
            confidence=device.confidence(idle, known_by),
            evidence=evidence,
            advice=[
                self.advice,
                "copy with non_blocking=True into pinned memory, and wait for it only where the value is needed",
            ],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """A host that waits for a busy device is the lesser matter."""
        device = features.device
        if device is None or device.shares["idle_sync"] >= IDLE_SYNC_SHARE:
            return finding.headroom
        busy = device.shares["compute"] >= MOSTLY_COMPUTING
        return min(finding.headroom, 0.999 * WORTH) if busy else finding.headroom

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the line that waits."""
        return f"{part(finding)} goes into waiting for results of the device{at(finding.culprit)}"


def _cause(site: WaitSite) -> str:
    if _SHAPE.search(site.operator):
        return "shape"
    return "item" if _ITEM.search(site.operator) else "copy"


def _tiny_copies(device: TraceFeatures) -> list[str]:
    groups = [group for group in device.metrics.copies if group.direction == CopyKind.D2H and group.tiny]
    tiny = sum(group.tiny for group in groups) / len(device.metrics.windows)
    if tiny < 1:
        return []
    return [f"{counted(tiny, 'copy', 'copies')} of at most {TINY_COPY_BYTES / 1024:g} KiB from device to host a step"]


PATTERN = SyncBound()
