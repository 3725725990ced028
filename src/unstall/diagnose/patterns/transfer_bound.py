"""transfer-bound: copies between host and device take the device's time, or stand in the step's way."""

from __future__ import annotations

from unstall.child.seams import cuda
from unstall.diagnose import claims
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Pattern, UsualRemedy, at, of_step, part
from unstall.diagnose.thresholds import SEEN, SEEN_GAIN, TRANSFER_SHARE
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import TRANSFER
from unstall.text.units import bytes_, percent
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures
from unstall.trace.phrases import counted
from unstall.trace.thresholds import TINY_COPY_BYTES
from unstall.trace.timeline import CopyKind, HostMemory
from unstall.trace.waiting import CopyGroup

_WORDS = {CopyKind.H2D: "from host to device", CopyKind.D2H: "from device to host"}


class TransferBound(Pattern):
    """Data moves when it should be computed with."""

    name = "transfer-bound"
    brief = "copies between host and device hold up the step"
    doing = ((TRANSFER.name, "copies between host and device"),)
    device_uses = ("copies",)
    causes = ("pageable", "blocking")
    phases = (TRANSFER.name,)
    advice = "copy the next batch while this one computes; send smaller types (uint8) and convert on the device"
    by_hand = (
        (
            None,
            "set pin_memory=True in the loader and non_blocking=True in the copies, copy the next batch on a CUDA"
            " stream of its own while the step computes, and send images as bytes",
        ),
    )
    usual_remedies = ((None, UsualRemedy("pinned, overlapped copies", Range(0.0, 0.3, 0.9, "the bytes still pass"))),)

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the time in calls that copy to the device."""
        transfer_s = host.phase_s(TRANSFER.name)
        headroom = host.headroom_without(transfer_s)
        if headroom < SEEN:
            return None
        loader = host.measurement.loader
        pageable = loader is not None and not loader.pin_memory
        advice = ["pin_memory=True in the DataLoader, and .to(device, non_blocking=True)"] if pageable else []
        share = host.share(TRANSFER.name)
        return self.finding(
            cause="pageable" if pageable else "blocking",
            culprit=host.blame.main_culprit(host.blame.in_phase(TRANSFER.name))
            or host.caller(cuda.TRANSFER, share=share),
            share=share,
            phases=self.phases,
            headroom=headroom,
            confidence="medium",
            evidence=[f"{of_step(share, transfer_s)}, copies data to the device"],
            advice=[*advice, self.advice],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """By copies that nothing hides: what they cost, and what pinning or overlapping them would gain."""
        metrics, shares = device.metrics, device.shares
        groups = metrics.copies
        if not groups:
            return None
        pageable = [group for group in groups if group.memory == HostMemory.PAGEABLE]
        hidden = max(device.gain("copies=overlapped"), device.gain("copies=pinned"))
        headroom = max(hidden, device.gain("copies=0"))
        share = max(shares["copies"], 1 - 1 / headroom)
        if shares["copies"] < TRANSFER_SHARE and (hidden < SEEN_GAIN or not _waited_for(groups)):
            return None
        main = groups[0]
        call = int(metrics.timeline.launch[main.longest])
        return self.finding(
            summary="copies between host and device hold up the step",
            cause="pageable" if pageable else "blocking" if _waited_for(groups) else None,
            culprit=metrics.blame.culprit(call, main.device_ns / metrics.windows.total_ns, device.where),
            share=shares["copies"],
            headroom=headroom,
            headroom_known_by="predicted",
            expected_gain=claims.replayed("pinned, overlapped copies", hidden, device),
            confidence=device.confidence(share),
            evidence=[
                f"copies take {of_step(shares['copies'], shares['copies'] * device.step_s)}, "
                "in which nothing is computed",
                *(_line(group, len(metrics.windows)) for group in groups[:2]),
            ],
            advice=[
                "pin the host's memory (pin_memory=True) and copy with non_blocking=True, one batch ahead",
                "send less: narrower dtypes, conversion on the device",
            ],
        )

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the line that copies."""
        return f"{part(finding)} copies data between host and device{at(finding.culprit)}"


def _waited_for(groups: list[CopyGroup]) -> bool:
    """Whether the host waits for copies that move something: reading single values back is another matter."""
    return any(group.blocking and group.bytes > TINY_COPY_BYTES * group.count for group in groups)


def _line(group: CopyGroup, steps: int) -> str:
    memory = f" ({group.memory.name.lower()} memory)" if group.memory else ""
    rate = group.bytes / group.device_ns if group.device_ns else 0.0
    size = f", {bytes_(group.bytes / steps)} at {bytes_(1e9 * rate)}/s" if group.bytes else ""
    held = f"; the host waited for {percent(group.blocking / group.count)} of them" if group.blocking else ""
    return f"{counted(group.count / steps, 'copy', 'copies')} {_WORDS[group.direction]}{memory} a step{size}{held}"


PATTERN = TransferBound()
