"""From a measurement to the report that other programs read."""

from __future__ import annotations

import jsonschema
import msgspec
import pytest
from factory import CALL, Source, measurement, run, stack, waiting

from unstall.diagnose.summary import report
from unstall.records.measurements import GrowingObject, LoaderMeasurement, MemoryMeasurement, RankMeasurement
from unstall.records.model import ModelMeasurement, ModuleMeasurement
from unstall.records.report import Report
from unstall.report.schema import schema

TRAINING = {"data_wait": 0.05, "forward": 0.02, "backward": 0.02, "optimizer": 0.01}


def make(phases=None, *, options=None, **more):
    made = report(run(**(options or {})), measurement(phases or TRAINING, **more))
    jsonschema.validate(msgspec.json.decode(made.to_json()), schema())
    assert Report.from_json(made.to_json()) == made
    return made


LOOPS = {
    "training": {},
    "with a loader": {"loader": LoaderMeasurement(workers=2, batch_size=32, batches_per_step=1.0, service_s=0.1)},
    "environments": {"phases": {"env": 0.08, "forward": 0.02}, "kind": "env", "envs": 8},
    "leaking": {"memory": MemoryMeasurement(rss_by_step=[(float(n), 5e8 + 3e6 * n) for n in range(100)], rss_peak=10**9)},
    "distributed": {"ranks": [RankMeasurement(n, 100 + n, 0.1, {"forward": 0.1 - n / 20, "comm": n / 20}, {}) for n in range(2)]},
    "model": {
        "model": ModelMeasurement(flops=1e9, peak_flops=1e11, ops=5000, batch_size=1, forwards=8, flops_coverage=0.9),
        "modules": [ModuleMeasurement("", "Net", "n.py", 1, 1, 0.1, 0.1, 0)],
    },
    "network": {"phases": {"data_wait": waiting("data_wait", 0.09, blocked=0.08, network=0.07), "forward": 0.01}},
    "noisy and short": {"steps": 3, "spread": 3.0, "other_cores": 9.0, "nan_loss": True, "disturbed": True},
}  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_every_report_keeps_the_contract(loop):
    made = make(**loop)
    assert made.findings[0] == made.verdict
    assert sum(phase.share for phase in made.phases) == pytest.approx(1.0, abs=0.02)
    assert made.throughput.steps_per_s == pytest.approx(10.0)
    assert made.throughput.step_s.mean == pytest.approx(0.1)


def test_page_faults_are_told_once_whatever_the_verdict():
    faulting = {"main_cpu_s": 0.1, "main_kernel_s": 0.04, "page_faults": 30_000.0}
    waits = make(**faulting)  # for data
    computes = make({"forward": 0.09, "backward": 0.01}, **faulting)
    assert (waits.verdict.pattern, computes.verdict.cause) == ("input-bound", "page-faults")
    for made in (waits, computes):
        assert sum("30,000 pages" in line for line in [*made.run.notes, *made.verdict.evidence]) == 1
    assert not any("pages" in line for line in make().run.notes)


def test_rates_of_a_loader_loop():
    loader = LoaderMeasurement(batch_size=32, batches_per_step=2.0)
    found = make(loader=loader).throughput
    assert found.batches_per_s == pytest.approx(20)
    assert found.samples_per_s == pytest.approx(640)
    assert found.env_steps_per_s is None


def test_rates_without_a_loader_are_those_of_the_model():
    found = make(model=ModelMeasurement(batch_size=8, forwards=2.0)).throughput
    assert found.samples_per_s == pytest.approx(160)
    assert found.batches_per_s is None


def test_rates_of_an_environment_loop():
    found = make({"env": 0.08, "forward": 0.02}, kind="env", envs=16, model=ModelMeasurement(batch_size=16, forwards=1))
    assert found.throughput.env_steps_per_s == pytest.approx(160)
    assert found.throughput.samples_per_s is None


def test_flops_and_their_share_of_the_peak():
    found = make(model=ModelMeasurement(flops=1e9, peak_flops=1e11, flops_coverage=0.8)).throughput
    assert found.flops_per_s == pytest.approx(1e10)
    assert found.mfu == pytest.approx(0.1)
    assert found.flops_coverage == 0.8
    assert make(model=ModelMeasurement(flops=1e9)).throughput.mfu is None


def test_utilization():
    found = make(
        cores=4.0, main_cpu_s=0.1, worker_cpu_s=0.1, run_delay=0.2, other_cores=0.3, disk_read=100.0
    ).utilization
    assert found.cpu == pytest.approx(0.5)
    assert (found.run_delay, found.other_processes_cores, found.disk_read_bytes_per_step) == (0.2, 0.3, 100.0)
    assert found.gpu is None
    assert found.network_bytes_per_step is None


@pytest.mark.parametrize(("rate", "is_told"), [(3e6, True), (2e5, False)])
def test_that_an_array_fills_is_told_where_it_would_be_growth(rate, is_told):
    filling = [(float(n), 5e8 + rate * n) for n in range(100)]
    memory = MemoryMeasurement(rss_by_step=filling, mapped_by_step=[(step, 4e9) for step, _ in filling])
    made = make(memory=memory, steps=100)
    assert any("within what was allocated or mapped before" in note for note in made.run.notes) == is_told
    assert "memory-growth" not in {finding.pattern for finding in made.findings}


def test_growth_is_told_only_where_memory_grows():
    leaking = MemoryMeasurement(rss_by_step=[(float(n), 5e8 + 3e6 * n) for n in range(100)])
    steady = MemoryMeasurement(rss_by_step=[(float(n), 5e8) for n in range(100)])
    assert make(memory=leaking).utilization.rss_growth_bytes_per_step == pytest.approx(3e6, rel=0.05)
    assert make(memory=steady).utilization.rss_growth_bytes_per_step is None


def test_a_buffer_that_fills_is_told_and_no_leak(tmp_path):
    code = Source(
        tmp_path / "agent.py",
        "def act(seen, x):\n    if len(seen) < 10_000:\n        seen.append(x)\n    else:\n        seen[0] = x\n",
    )
    rates = {"len_per_step": 1.0, "bytes_per_step": 2e6, "graph_per_step": 0.0}
    held = GrowingObject(path="seen", kind="list", file=code.file, function="act", **rates)
    filling = [(float(n), 5e8 + 2e6 * n) for n in range(100)]
    made = make(memory=MemoryMeasurement(rss_by_step=filling, growing=[held]))
    assert "memory-growth" not in {finding.pattern for finding in made.findings}
    assert any("until seen is full (`len(seen) < 10000`" in note for note in made.run.notes)


def test_ceilings_are_the_rates_without_each_finding():
    made = make({"data_wait": 0.08, "forward": 0.02})
    ceiling = made.ceilings[0]
    assert ceiling.steps_per_s == pytest.approx(10 * made.verdict.headroom)
    assert ceiling.gap == pytest.approx(1 - 1 / made.verdict.headroom)
    assert all(finding.headroom > 1 for finding in made.findings[: len(made.ceilings)])


def test_modules_only_when_asked_for():
    modules = [ModuleMeasurement("", "Net", "n.py", 1, 1, 0.1, 0.02, 3)]
    assert make(modules=modules).modules == []
    (row,) = make(modules=modules, options={"modules": True}).modules
    assert (row.name, row.type, row.self_s) == ("(model)", "Net", 0.02)


def test_doubts_and_notes_are_told():
    made = make(steps=3, nan_loss=True, options={"notes": ["from the launcher"]})
    assert made.run.notes[0] == "from the launcher"
    assert any("only 3 steps" in note for note in made.run.notes)
    assert any("NaN" in note for note in made.run.notes)
    assert made.verdict.confidence == "low"


def test_the_users_spans_and_the_start_up_are_told():
    made = make()
    (span,) = made.spans
    assert (span.name, span.count, span.total_s, span.mean_s) == ("mine", 4, 2.0, 0.5)
    assert made.startup.warmup_s == 0.5


def test_hotspots_are_told(tmp_path):
    code = Source(tmp_path / "train.py", "def work():\n    return 1  # work\n")
    (spot,) = make(samples=[stack(code.at("work", "# work")), stack(CALL)]).hotspots
    assert (spot.function, spot.line, spot.share) == ("work", 2, 0.5)


def test_a_run_without_a_loop_says_so():
    made = report(run(), None)
    assert (made.run.steps, made.verdict.pattern, made.verdict.confidence) == (0, "no-verdict", "low")
    jsonschema.validate(msgspec.json.decode(made.to_json()), schema())
