"""The report contract: what is written satisfies the schema and reads back as it was."""

from __future__ import annotations

import jsonschema
import msgspec
import pytest
from changes import changed

from unstall.records.experiments import Ceiling, ReportedExperiment
from unstall.records.observations import Frame, StackSample
from unstall.records.remedies import TriedRemedy
from unstall.records.report import Culprit, Finding, Hotspot, ModuleTime, PhaseTime, Report, SpanTime, Startup
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization
from unstall.records.vocabulary import PHASE_NAMES, Confidence, KnownBy
from unstall.report.schema import schema


def finding(**more):
    values = {
        "pattern": "input-bound",
        "headroom": 2.5,
        "headroom_known_by": "estimated",
        "confidence": "high",
        "evidence": ["so"],
        "advice": ["do"],
    }
    return Finding(**{**values, **more})


def smallest():
    run = RunInfo(id="1", command=[], started="", duration_s=0, steps=0, exit_code=None, environment={})
    return Report(
        kind="run",
        run=run,
        throughput=Throughput(steps_per_s=None),
        utilization=Utilization(),
        phases=[],
        verdict=finding(),
        findings=[finding()],
    )


def fullest():
    verdict = finding(culprit=Culprit(function="f", file="a.py", line=3, share=0.4, where="rank 3"), cause="storage")
    return changed(
        smallest(),
        kind="optimize",
        run__environment={"python": "3.11", "gpus": [{"name": "GPU"}], "cpu_count": 4},
        run__exit_code=-9,
        throughput=Throughput(
            steps_per_s=10.0, samples_per_s=320.0, mfu=0.2, step_s=StepTime(0.1, 0.1, 0.2), flops_coverage=0.9
        ),
        utilization=Utilization(cpu=0.5, gpu=[0.1, 0.9], run_delay=0.1, rss_peak_bytes=10, gpu_memory_peak_bytes=5),
        phases=[
            PhaseTime(name=name, share=1 / len(PHASE_NAMES), mean_s=0.1, p95_s=0.2, network_s=0.1)
            for name in PHASE_NAMES
        ],
        verdict=verdict,
        findings=[verdict, finding(pattern="healthy", headroom=1.0)],
        ceilings=[Ceiling(component="f", steps_per_s=20.0, known_by="measured", ci95=(19.0, 21.0), gap=0.5)],
        experiments=[
            ReportedExperiment(
                name="f", intervention="stub", ratio=2.0, ci95=(1.9, 2.1), predicted_ratio=2.2, segments=8
            )
        ],
        remedies=[TriedRemedy(name="r", exactness="exact", kept=False, why_not="slower", speedup=0.9, ci95=(0.8, 1.0))],
        total_speedup=2.0,
        patch="--- a\n+++ b\n",
        hotspots=[Hotspot(function="f", file="a.py", line=3, share=0.4, where="main")],
        modules=[ModuleTime(name="m", type="Linear", calls_per_step=1, forward_s=0.1, self_s=0.1)],
        spans=[SpanTime(name="s", count=1, total_s=1.0, mean_s=1.0)],
        startup=Startup(before_first_batch_s=1, worker_start_s=1, warmup_s=1, epoch_gaps_s=1, after_last_step_s=1),
    )


@pytest.mark.parametrize("report", [smallest(), fullest()], ids=["smallest", "fullest"])
def test_a_report_satisfies_the_schema_and_reads_back_as_it_was(report):
    written = report.to_json()
    jsonschema.validate(msgspec.json.decode(written), schema())
    assert Report.from_json(written) == report
    assert Report.from_json(written.decode()) == report


def test_a_report_says_which_contract_it_keeps():
    assert msgspec.json.decode(smallest().to_json())["schema"] == "unstall/2"


def test_the_words_are_those_of_the_schema():
    definitions = schema()
    phase = definitions["properties"]["phases"]["items"]["properties"]["name"]["description"]
    assert phase.startswith(", ".join(PHASE_NAMES))
    found = definitions["$defs"]["finding"]["properties"]
    assert list(KnownBy.__args__) == found["headroom_known_by"]["enum"]
    assert list(Confidence.__args__) == found["confidence"]["enum"]


def test_keys_that_a_later_version_adds_are_passed_over():
    raw = msgspec.json.decode(fullest().to_json())
    raw["new"] = 1
    raw["verdict"]["new"] = {"x": []}
    assert Report.from_json(msgspec.json.encode(raw)) == fullest()


@pytest.mark.parametrize(
    "path, value, names",
    [
        (("verdict", "pattern"), 7, "verdict.pattern"),
        (("run", "steps"), "many", "run.steps"),
        (("phases", 0, "name"), 7, r"phases\[0\].name"),
        (("verdict", "confidence"), "total", "verdict.confidence"),
    ],
)
def test_what_is_wrong_in_a_report_is_named(path, value, names):
    raw = msgspec.json.decode(fullest().to_json())
    place = raw
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(msgspec.ValidationError, match=names):
        Report.from_json(msgspec.json.encode(raw))


@pytest.mark.parametrize("missing", ["run", "verdict", "findings", "throughput"])
def test_what_is_missing_in_a_report_is_named(missing):
    raw = msgspec.json.decode(smallest().to_json())
    del raw[missing]
    with pytest.raises(msgspec.ValidationError, match=missing):
        Report.from_json(msgspec.json.encode(raw))


def test_samples_are_values():
    one = StackSample(1, "MainThread", (Frame("f", "a.py", 1),), 2)
    assert one == StackSample(1, "MainThread", (Frame("f", "a.py", 1),), 2)
    assert hash(one.frames[0]) == hash(Frame("f", "a.py", 1))
    with pytest.raises(AttributeError):
        one.count = 3


@pytest.mark.parametrize(
    "where, process, index",
    [
        ("main", "main", None),
        ("worker", "worker", None),
        ("worker 1", "worker", 1),
        ("rank 3", "rank", 3),
        ("rank three", "rank", None),
        ("rank 99999999999999999999", "rank", None),
        ("a helper 2", "other", None),
        ("", "other", None),
    ],
)
def test_where_a_line_runs_says_which_process_that_is(where, process, index):
    culprit = Culprit(function="f", file="a.py", line=3, share=0.4, where=where)
    assert (culprit.process, culprit.index) == (process, index)
    assert msgspec.json.decode(msgspec.json.encode(culprit), type=Culprit) == culprit


def test_reports_from_before_there_was_a_process_are_read():
    raw = b'{"function": "f", "file": "a.py", "line": 3, "share": 0.4, "where": "rank 2", "process": "main"}'
    assert msgspec.json.decode(raw, type=Culprit).process == "rank"
    assert msgspec.json.decode(raw, type=Hotspot).index == 2


def test_a_run_without_a_step_in_version_1_was_not_healthy():
    raw = msgspec.json.decode(smallest().to_json())
    raw["schema"], raw["run"]["steps"], raw["verdict"]["pattern"] = "unstall/1", 0, "healthy"
    assert Report.from_json(msgspec.json.encode(raw)).verdict.pattern == "no-verdict"
    raw["run"]["steps"] = 5
    assert Report.from_json(msgspec.json.encode(raw)).verdict.pattern == "healthy"
