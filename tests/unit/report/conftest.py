"""Reports as real runs give them, one per kind of ending."""

from __future__ import annotations

import pytest
from report_examples import EXAMPLES, finding, make, source, warp

from unstall.records import report as r
from unstall.records.run import Throughput, Utilization
from unstall.records.speedup import ExpectedGain, Speedup


@pytest.fixture
def input_bound() -> r.Report:
    verdict = finding(
        "input-bound",
        cause="transform",
        culprit=warp(),
        evidence=[
            "the main thread waits 20 ms of each 24.1 ms step for the next batch",
            "RandomWarp.__call__ holds 91 % of the loader workers' samples",
            "the workers are computing, not blocked: 1.9 of 2 cores busy while the loop waits",
        ],
        advice=[
            "do RandomWarp on whole arrays (NumPy or torch indexing) instead of pixel by pixel",
            "more workers would not help: all cores are busy",
        ],
        ceiling=Speedup(value=4.1, low=3.2, high=5.84, confidence="medium", known_by="estimated"),
        expected_gain=ExpectedGain(
            remedy="a cheaper transform", value=2.6, low=1.34, high=5.0, confidence="low", known_by="estimated"
        ),
    )
    second = finding(
        "callback-bound",
        cause="logging",
        headroom=1.06,
        culprit=r.Culprit(function="log_step", file=source("train.py"), line=88, share=0.05),
    )
    phases = {
        "forward": 0.081,
        "data_wait": 0.834,
        "backward": 0.051,
        "optimizer": 0.022,
        "callback": 0.007,
        "other": 0.004,
        "transfer": 0.001,
    }
    wait = r.PhaseTime(
        name="data_wait",
        share=0.834,
        mean_s=0.0201,
        blocked_s=0.012,
        network_s=0.0111,
        network_bytes=1.2e6,
    )
    return make(
        verdict,
        phases,
        findings=[verdict, second],
        special={"data_wait": wait},
        startup=r.Startup(
            before_first_batch_s=2.1,
            worker_start_s=0.9,
            warmup_s=1.2,
            epoch_gaps_s=0.0,
            after_last_step_s=0.1,
        ),
        run={"notes": ["py-spy saw the program in 11 windows of 1 s, outside the timed steps"]},
        utilization=Utilization(
            cpu=0.98,
            run_delay=0.04,
            rss_peak_bytes=812_000_000,
            rss_growth_bytes_per_step=120.0,
            other_processes_cores=0.41,
            disk_read_bytes_per_step=2.3e6,
        ),
    )


@pytest.fixture
def contended() -> r.Report:
    verdict = finding("input-bound", cause="transform", culprit=warp(), headroom=6.2)
    phases = {"backward": 0.56, "forward": 0.3, "data_wait": 0.09, "optimizer": 0.05}
    return make(verdict, phases)


@pytest.fixture
def compute_bound() -> r.Report:
    verdict = finding(
        "compute-bound",
        cause="kernel",
        headroom=1.4,
        headroom_known_by="predicted",
        confidence="medium",
        culprit=r.Culprit(
            function="Encoder.forward",
            file=source("model.py"),
            line=7,
            share=0.7,
            code="x = self.conv(x)",
        ),
        evidence=["the model's math takes 96 % of each step"],
        advice=["try bfloat16 autocast: it changes results within its tolerance"],
    )
    return make(verdict, {"forward": 0.35, "backward": 0.55, "optimizer": 0.06, "other": 0.04})


@pytest.fixture
def memory_growth() -> r.Report:
    verdict = finding(
        "memory-growth",
        cause="graph",
        headroom=1.0,
        culprit=r.Culprit(
            function="<module>",
            file=source("train.py"),
            line=31,
            share=0.01,
            code="losses.append(loss)",
        ),
        evidence=["losses holds the autograd graph of every step: 200 entries, 14 nodes each"],
        advice=["keep loss.detach() or loss.item()"],
    )
    return make(
        verdict,
        {"forward": 0.4, "backward": 0.5, "optimizer": 0.1},
        utilization=Utilization(rss_peak_bytes=2_400_000_000, rss_growth_bytes_per_step=2.1e6),
    )


@pytest.fixture
def healthy() -> r.Report:
    verdict = finding("healthy", headroom=1.05)
    return make(verdict, {"forward": 0.35, "backward": 0.55, "optimizer": 0.06, "other": 0.04})


@pytest.fixture
def noisy() -> r.Report:
    verdict = finding(
        "host-bound",
        cause="postprocess",
        confidence="low",
        headroom=1.8,
        culprit=r.Culprit(function="nms", file=source("infer.py"), line=12, share=0.44),
    )
    return make(
        verdict,
        {"other": 0.46, "forward": 0.54},
        run={"steps": 8, "notes": ["low confidence: only 8 steps were measured"]},
    )


@pytest.fixture
def no_steps() -> r.Report:
    verdict = finding(
        "healthy",
        headroom=1.0,
        confidence="low",
        advice=["mark the loop: for batch in unstall.steps(loader)", "or run it for longer"],
    )
    return make(
        verdict,
        {},
        run={
            "steps": 0,
            "warmup_steps": 0,
            "duration_s": 0.8,
            "exit_code": 1,
            "notes": ["the program ended before its first optimizer step", "py-spy may not attach"],
        },
        throughput=Throughput(steps_per_s=None),
        utilization=Utilization(),
    )


@pytest.fixture
def reinforcement() -> r.Report:
    verdict = finding(
        "environment-bound",
        cause="env",
        culprit=r.Culprit(function="Maze.step", file=source("maze.py"), line=77, share=0.74, code="self._ray(x)"),
    )
    return make(
        verdict,
        {"env": 0.76, "forward": 0.14, "backward": 0.06, "optimizer": 0.04},
        throughput=Throughput(steps_per_s=12_400.0, env_steps_per_s=99_200.0),
        utilization=Utilization(cpu=0.5, gpu=[0.12], gpu_memory_peak_bytes=3_100_000_000),
        spans=[r.SpanTime(name=f"phase {i}", count=100 * i, total_s=i / 7, mean_s=i / 700) for i in range(1, 8)],
        modules=[
            r.ModuleTime(
                name=f"policy.net.{i}",
                type="Linear",
                calls_per_step=1.0,
                forward_s=i / 9000,
                self_s=i / 9000,
            )
            for i in range(7)
        ],
    )


@pytest.fixture
def hostile() -> r.Report:
    nasty = "[red]x[/red] \x1b[31mred\x1b[0m \x1b]0;title\x07a\nb\r\tc \u202egnp\u200b \ud800 `|` <img> @you 漢字"
    culprit = r.Culprit(function="漢字" * 200, file="/" + "dir/" * 80 + "t.py", line=9, share=0.5, code=nasty * 5)
    verdict = finding(
        "callback-bound",
        cause=nasty,
        culprit=culprit,
        evidence=[nasty * 9] * 9,
        advice=[nasty * 9] * 9,
    )
    return make(
        verdict,
        {"callback": 0.7, nasty: 0.2, "other": 0.1},
        run={"command": ["train.py", nasty * 20], "notes": [nasty * 3] * 9},
        findings=[verdict, finding("sync-bound", culprit=culprit)],
        spans=[r.SpanTime(name=nasty, count=1, total_s=1.0, mean_s=1.0)] * 9,
        callbacks=[
            r.CallbackTime(
                framework=nasty,
                callback=nasty,
                event=nasty,
                calls=1,
                total_s=1.0,
                mean_s=1.0,
                share=0.5,
                file=nasty,
                line=1,
            )
        ]
        * 9,
        modules=[r.ModuleTime(name=nasty, type=nasty, calls_per_step=1.0, forward_s=1.0, self_s=1.0)] * 9,
    )


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> r.Report:
    """Each of the reports of this file in turn."""
    return request.getfixturevalue(request.param)
