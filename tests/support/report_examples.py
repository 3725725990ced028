"""What the example reports are made of."""

from __future__ import annotations

import os

import msgspec

from unstall.diagnose.patterns import all_patterns
from unstall.records import report as r
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization

EXAMPLES = (
    "input_bound",
    "contended",
    "compute_bound",
    "memory_growth",
    "healthy",
    "noisy",
    "no_steps",
    "reinforcement",
    "hostile",
)


def make(verdict: r.Finding, phases: dict[str, float], *, step_s: float = 0.0241, **more) -> r.Report:
    """A report of 200 steps whose phases take the given shares of ``step_s`` seconds."""
    run = {
        "id": "20250301-101500-4711",
        "command": ["train.py", "--epochs", "1"],
        "started": "2025-03-01T10:15:00Z",
        "duration_s": 14.2,
        "steps": 200,
        "warmup_steps": 12,
        "exit_code": 0,
        "environment": {"python": "3.11.7", "torch": "2.13.0", "cpu_count": 2, "gpus": []},
        **more.pop("run", {}),
    }
    utilization = more.pop("utilization", None) or Utilization(
        cpu=0.98, run_delay=0.31, rss_peak_bytes=812_000_000, gpu=None
    )
    verdict = told(verdict, phases, utilization)
    return r.Report(
        kind="run",
        run=RunInfo(**run),
        throughput=more.pop("throughput", None)
        or Throughput(
            steps_per_s=1 / step_s,
            batches_per_s=1 / step_s,
            samples_per_s=32 / step_s,
            flops_per_s=3.2e9,
            mfu=0.0312,
            flops_coverage=0.98,
            step_s=StepTime(mean=step_s, p50=0.97 * step_s, p95=1.4 * step_s),
        ),
        utilization=utilization,
        phases=[
            more.get("special", {}).get(name) or r.PhaseTime(name=name, share=s, mean_s=s * step_s)
            for name, s in phases.items()
        ],
        verdict=verdict,
        findings=[verdict, *more.pop("findings", [verdict])[1:]],
        **{key: value for key, value in more.items() if key != "special"},
    )


def told(found: r.Finding, phases: dict[str, float], use: Utilization) -> r.Finding:
    """The finding with what the diagnosis says of it, where the phases take these shares."""
    pattern = all_patterns()[found.pattern]
    share = sum(phases.get(name, 0.0) for name in pattern.phases) or None
    found = msgspec.structs.replace(found, share=share, phases=pattern.phases)
    return msgspec.structs.replace(
        found, summary=pattern.sentence(found, use), condition=found.condition or pattern.condition(found)
    )


def finding(pattern: str, **more) -> r.Finding:
    """A finding of a pattern, with all that views are told of it."""
    known = all_patterns().get(pattern)
    of_pattern = {"next_step": known.next_step, "traits": known.traits} if known is not None else {}
    values = {
        "headroom": 4.13,
        "headroom_known_by": "estimated",
        "confidence": "high",
        "evidence": [],
        "advice": [],
        **of_pattern,
        **more,
    }
    return r.Finding(pattern=pattern, **values)


def source(name: str) -> str:
    return os.path.join(os.getcwd(), name)


def warp() -> r.Culprit:
    return r.Culprit(
        function="RandomWarp.__call__",
        file=source("train.py"),
        line=42,
        share=0.91,
        where="worker",
        code="out[y, x] = img[sy, sx]",
        via="numpy.ndarray.__getitem__",
    )
