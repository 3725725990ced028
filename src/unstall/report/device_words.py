"""What a device's time is spent on, and what a pattern means on a device, in words."""

from __future__ import annotations

from unstall.records.vocabulary import PatternName
from unstall.text import units

USES = {
    "compute": ("computing", "kernels"),
    "communication": ("collective", "nothing is computed meanwhile"),
    "copies": ("copies", "nothing is computed meanwhile"),
    "idle_loader": ("idle: data", "the main loop waits for its next batch"),
    "idle_sync": ("idle: sync", "the host waits for the device"),
    "idle_queued": ("idle: held", "submitted work waits for another stream"),
    "idle_submitting": ("idle: late", "the host submits small work, too slowly"),
    "idle_host": ("idle: host", "the host does something else"),
    "idle_cold": ("idle: cold", "a kernel's code is loaded for the first time"),
}
"""The disjoint uses of the device's time: a label, and what it means."""

PATH = {
    "compute": "kernels",
    "communication": "collectives",
    "copy": "copies",
    "launch_call": "launch calls",
    "other_call": "other calls",
    "sync": "waiting for the device",
    "submitting": "host between calls",
    "host": "host, long",
    "loader": "loader",
    "latency": "launch latency",
    "stream": "gaps in a stream",
    "edge": "waits between streams",
}
"""The kinds of time on a critical path."""

_SENTENCES: dict[PatternName, str] = {
    "input-bound": "the device is idle {idle_loader} of a step because the next batch is late",
    "transfer-bound": "copies between host and device hold up the step",
    "compute-bound": "the device computes {compute} of a step",
    "overhead-bound": "the device is idle {idle_submitting} of a step because the host submits its work too slowly",
    "sync-bound": "the host waits for the device {blocked} of a step, and the device then for the host",
    "host-bound": "the device is idle {idle_host} of a step while the host computes something itself",
    "communication-bound": "{communication} of a step are collectives that no computing hides",
    "straggler": "one rank comes late to the collectives",
    "healthy": "the device is busy {busy} of a step, and nothing that was found is worth fixing",
}


def sentence(pattern: PatternName, shares: dict[str, float]) -> str:
    """What a pattern means on a device, with its shares of the step.

    Empty for a pattern of the host's alone, and where a share that the sentence names is not in the report.
    """
    told = {name: units.percent(share) for name, share in shares.items()}
    try:
        return _SENTENCES.get(pattern, "").format_map(told)
    except KeyError:
        return ""
