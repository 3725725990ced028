"""What a report says of the run itself: what was run, its steps, its rates, and how it used the machine.

Times are seconds, shares are 0..1, sizes are bytes, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """What was run, when, how it ended, and on what."""

    id: str
    command: Sequence[str]
    started: str
    duration_s: float
    steps: int
    exit_code: int | None
    environment: Mapping[str, Any]
    warmup_steps: int = 0
    world_size: int = 1
    attached: bool = False
    """Whether it was recorded while it was running already, for a part of it: ``unstall attach --record``."""
    notes: Sequence[str] = msgspec.field(default_factory=list)
    """What could not be measured, and why; said plainly, one line each."""


class Between(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What recurs between steps and is none: evaluation, the end of an epoch. The mean step contains it."""

    mean_s: float
    """Seconds of the mean step."""
    each_s: float
    """Seconds of one occurrence, on average."""
    count: int
    """Occurrences in the measured steps."""
    function: str = ""
    """The function that calls the model there; empty where nothing does."""
    file: str = ""
    line: int = 0


class StepTime(msgspec.Struct, frozen=True):
    """Seconds a step, over the measured steps."""

    mean: float
    p50: float
    p95: float


class Generation(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """The mean request, where a step is one: a call of ``generate()`` for a batch of prompts."""

    sequences: float
    """Generated at once."""
    prompt_tokens: float
    """Tokens of each sequence's prompt."""
    new_tokens: float
    """Tokens generated for each sequence."""
    prefill_s: float
    """Seconds until the first new token was there."""
    decode_s: float
    """Seconds for the others."""
    cached: bool
    """Keys and values were kept: else the model is given all tokens again for each new one."""
    longest_input: float = 0.0
    """Tokens that the model is given for the last new one."""


class Throughput(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Rates over the measured steps; what was not measured is absent."""

    steps_per_s: float | None
    batches_per_s: float | None = None
    samples_per_s: float | None = None
    env_steps_per_s: float | None = None
    tokens_per_s: float | None = None
    """Tokens generated a second, in all sequences."""
    flops_per_s: float | None = None
    mfu: float | None = None
    step_s: StepTime | None = None
    flops_coverage: float | None = None
    """Share of the operator calls seen for which a FLOP formula is known."""
    between: Between | None = None


class GpuState(msgspec.Struct, kw_only=True, frozen=True):
    """A GPU's clock and power while it was at work, mean over these looks."""

    clock: float
    """Share of its highest clock, 0..1."""
    watts: float
    limit_watts: float
    held_back: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Share of the looks by the driver's reason for a lower clock, the most first."""


class Utilization(msgspec.Struct, kw_only=True, frozen=True):
    """How busy the hardware was during the measured steps."""

    cpu: float | None = None
    gpu: Sequence[float] | None = None
    gpu_states: Sequence[GpuState | None] = msgspec.field(default_factory=list)
    """State of each device; None for one that was not at work, or does not tell."""
    run_delay: float | None = None
    rss_peak_bytes: int | None = None
    rss_growth_bytes_per_step: float | None = None
    gpu_memory_peak_bytes: int | None = None
    gpu_memory_growth_bytes_per_step: float | None = None
    network_bytes_per_step: float | None = None
    disk_read_bytes_per_step: float | None = None
    disk_write_bytes_per_step: float | None = None
    other_processes_cores: float | None = None
    """Cores taken by processes outside this program, mean over the measured steps."""


class Account(msgspec.Struct, kw_only=True, frozen=True):
    """A step that was corrected: which correction, and what is left of it."""

    name: Literal["without_neighbours"]
    """The time that other programs kept threads of this one waiting for a core is taken out."""
    step_s: float
    """Seconds of the corrected step."""
