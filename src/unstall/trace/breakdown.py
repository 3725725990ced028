"""Where the device's time goes in each step: computing, exposed communication and copies, and idle by reason."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from unstall.trace import intervals
from unstall.trace.activity import Activity, DeviceActivity
from unstall.trace.intervals import Floats, Intervals
from unstall.trace.queue import Queue
from unstall.trace.steps import StepWindows
from unstall.trace.thresholds import HOST_GAP_NS


@dataclass(frozen=True)
class Breakdown:
    """A share of each window for each use of the device; arrays of one number a window, mean over devices.

    The first nine are disjoint and sum to one.
    """

    compute: Floats
    communication: Floats
    """Exposed: nothing is computed meanwhile."""
    copies: Floats
    """Exposed."""
    idle_loader: Floats
    """Idle while the main loop waits for its next batch."""
    idle_sync: Floats
    """Idle while the host waits for the device: what it waited for is done, and nothing was submitted behind it."""
    idle_queued: Floats
    """Idle though work is submitted: it waits for another stream or device, or for its launch to arrive."""
    idle_submitting: Floats
    """Idle while the host submits work piece by piece, too slowly."""
    idle_host: Floats
    """Idle while the host does something else: no launch for a long time before and after."""
    idle_cold: Floats
    """Idle while a kernel's code is loaded for the first time."""
    busy: Floats
    communication_all: Floats
    """Overlapped with computing or not."""
    copies_all: Floats
    loader: Floats
    """Host time; the rest as well, none of it disjoint from the others."""
    launch: Floats
    back_pressure: Floats
    """The part of ``launch`` that waits for room in a full launch queue."""
    sync: Floats
    blocked: Floats
    """Synchronisation and blocking copies."""
    idle_operator: Floats
    """Idle while a host thread runs an operator."""

    def mean(self, windows: StepWindows) -> dict[str, float]:
        """Each share over all windows, longer ones counting for more."""
        weights = windows.dur_ns / windows.dur_ns.sum()
        return {field.name: float(getattr(self, field.name) @ weights) for field in fields(self)}


def breakdown(activity: Activity, queue: Queue, windows: StepWindows) -> Breakdown:
    """The breakdown of each window; over several devices their mean."""
    host = _host_shares(activity, queue, windows)
    devices = [_device_shares(activity, queue, device, windows) for device in activity.devices]
    if not devices:
        names = [field.name for field in fields(Breakdown) if field.name not in host]
        devices = [{name: np.zeros(len(windows)) for name in names}]
    means = {name: np.mean([shares[name] for shares in devices], axis=0) for name in devices[0]}
    return Breakdown(**host, **means)


def idle_reasons(
    activity: Activity, queue: Queue, device: DeviceActivity, windows: StepWindows
) -> dict[str, Intervals]:
    """The device's idle time, divided by reason; the first that applies has it."""
    idle = intervals.gaps(device.busy, windows.whole)
    reasons = [activity.loader, activity.blocked, queue.cold, queue.delayed(device)]
    names = ("loader", "sync", "cold", "queued")
    *parts, rest = intervals.split(idle, reasons)
    long, short = _by_length(rest)
    return {**dict(zip(names, parts)), "host": long, "submitting": short}


def _by_length(idle: Intervals) -> tuple[Intervals, Intervals]:
    long = idle.end - idle.start >= HOST_GAP_NS
    return Intervals(idle.start[long], idle.end[long]), Intervals(idle.start[~long], idle.end[~long])


def _device_shares(activity: Activity, queue: Queue, device: DeviceActivity, windows: StepWindows) -> dict[str, Floats]:
    reasons = idle_reasons(activity, queue, device, windows)
    idle = intervals.gaps(device.busy, windows.whole)
    sets = {
        "compute": device.compute,
        "communication": device.exposed_communication,
        "copies": device.exposed_copies,
        "busy": device.busy,
        "communication_all": device.communication,
        "copies_all": device.copies,
        "idle_operator": intervals.both(idle, activity.operators),
        **{f"idle_{name}": part for name, part in reasons.items()},
    }
    shares = {name: part.within(windows.spans) / windows.dur_ns for name, part in sets.items()}
    # Copies beside collectives are neither's exposed time; they go with the collectives, which set the pace.
    shares["communication"] = shares["busy"] - shares["compute"] - shares["copies"]
    return shares


def _host_shares(activity: Activity, queue: Queue, windows: StepWindows) -> dict[str, Floats]:
    sets = {
        "loader": activity.loader,
        "launch": activity.launches,
        "back_pressure": queue.back_pressure,
        "sync": activity.syncs,
        "blocked": activity.blocked,
    }
    return {name: part.within(windows.spans) / windows.dur_ns for name, part in sets.items()}
