"""What a device's time is spent on, in words."""

from __future__ import annotations

DEVICE_USES = {
    "compute": ("computing", "kernels"),
    "communication": ("collective", "nothing is computed meanwhile"),
    "copies": ("copies", "nothing is computed meanwhile"),
    "idle_loader": ("idle: data", "the main loop waits for its next batch"),
    "idle_sync": ("idle: sync", "the host waits for the device"),
    "idle_queued": ("idle: wait", "submitted work waits for another stream"),
    "idle_submitting": ("idle: API", "the host submits small operations too slowly"),
    "idle_host": ("idle: host", "the host does something else"),
    "idle_cold": ("idle: load", "a kernel's code is loaded for the first time"),
}
"""The disjoint uses of the device's time: a label, and what it means."""

CRITICAL_PATH_KINDS = {
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
