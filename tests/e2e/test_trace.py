"""`unstall trace` and the GPU window of `unstall run`, as commands in processes of their own."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys

import jsonschema
import pytest

from unstall.report.schema import schema

START_US = 1_700_000_000_000_000


def _event(name, ts, dur, cat, tid=100, **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": 100, "tid": tid, "ts": START_US + ts, "dur": dur, "args": args}


def _trace(gap=60):
    """Three steps of forty small kernels, each done before the next is launched."""
    events = []
    for step in range(3):
        at = step * 40 * gap
        events.append(_event(f"ProfilerStep#{step}", at, 40 * gap - 1, "user_annotation"))
        for number in range(40):
            begin, correlation = at + number * gap, 1 + step * 40 + number
            events.append(_event("aten::mul", begin, gap - 10, "cpu_op"))
            events.append(_event("cudaLaunchKernel", begin + 20, 6, "cuda_runtime", correlation=correlation))
            events.append(_event("mul_kernel", begin + 28, 5, "kernel", 7, correlation=correlation, device=0, stream=7))
    return {"schemaVersion": 1, "traceEvents": events}


def _unstall(*words, cwd):
    return subprocess.run(
        [sys.executable, "-m", "unstall", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(_trace()).encode()))
    return path


def test_a_screen_and_a_report(trace, tmp_path):
    result = _unstall("trace", trace.name, "--json", "r.json", "--what-if", "launch=0", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "overhead-bound" in result.stdout
    assert len(result.stdout.splitlines()) <= 40
    report = json.loads((tmp_path / "r.json").read_bytes())
    jsonschema.validate(report, schema(), jsonschema.Draft202012Validator)
    assert report["kind"] == "trace"
    assert report["trace"]["what_ifs"][0]["what_if"] == "launch=0"
    assert report["trace"]["what_ifs"][0]["gain"] > 2


def test_a_page_and_a_rank_that_cannot_be_read(trace, tmp_path):
    (tmp_path / "rank1.json").write_bytes(b"killed")
    result = _unstall("trace", trace.name, "rank1.json", "--html", "r.html", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "left out" in result.stderr
    assert "overhead-bound" in (tmp_path / "r.html").read_text()


def test_a_comparison_and_an_export(trace, tmp_path):
    (tmp_path / "after.json").write_text(json.dumps(_trace(gap=40)))
    result = _unstall("trace", trace.name, "after.json", "--compare", "--json", "c.json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1.5× faster" in result.stdout
    assert json.loads((tmp_path / "c.json").read_bytes())["ratio"] == pytest.approx(1.5, rel=0.05)
    result = _unstall("trace", trace.name, "--export", "csv", "--output", "t.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert len((tmp_path / "t.csv").read_text().splitlines()) > 300


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing.json"], "no such file"),
        (["."], "is a folder"),
        (["empty.json"], "empty.json"),
        (["hopeless.json"], "hopeless.json"),
        (["trace.json.gz", "--what-if", "launch"], "write NAME=FACTOR"),
        (["trace.json.gz", "--what-if", "aten::mule=0"], "did you mean aten::mul"),
        (["trace.json.gz", "--compare"], "two files"),
        (["trace.json.gz", "--export", "csv"], "go together"),
        (["trace.json.gz", "--export", "xml", "--output", "x"], "perfetto"),
        (["trace.json.gz", "--json", "no/where.json"], "no folder"),
        (
            ["trace.json.gz", "trace.json.gz", "--compare", "--html", "c.html"],
            "--html cannot be combined with --compare",
        ),
        (
            ["trace.json.gz", "--export", "csv", "--output", "x", "--what-if", "sync=0"],
            "cannot be combined with --export",
        ),
    ],
)
def test_one_clear_line_for_what_cannot_be_done(trace, tmp_path, words, says):
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "hopeless.json").write_bytes(b"\x00\x01 this is no trace")
    result = _unstall("trace", *words, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_without_a_gpu_the_window_changes_nothing(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "torch.manual_seed(0)\n"
        "model = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for step in range(40):\n"
        "    loss = model(torch.randn(8, 4)).square().mean()\n"
        "    optimizer.zero_grad(); loss.backward(); optimizer.step()\n"
        "print(loss.item())\n"
    )
    outputs = []
    for window in (0, 3):
        words = ("run", "--no-sampling", "--gpu-window", window, "--json", "r.json", "train.py")
        result = _unstall(*words, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        outputs.append(result.stdout)
        report = json.loads((tmp_path / "r.json").read_bytes())
        assert report["trace"] is None
        assert not any("GPU window" in note for note in report["run"]["notes"])
        assert not list(tmp_path.rglob("gpu-*.json"))
    assert outputs[0] == outputs[1]


def test_of_several_processes_in_a_file_the_first_is_taken_and_that_is_told(tmp_path):
    """An export of Nsight Systems, as of a job on two devices."""
    with sqlite3.connect(tmp_path / "job.sqlite") as connection:
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid)")
        rows = [(at, at + 60, device, 7, device + 1 << 24) for at in range(0, 3000, 100) for device in (0, 1)]
        connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    result = _unstall("trace", "job.sqlite", "--export", "csv", "--output", "t.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "2 processes: the first (rank 0) is taken" in result.stderr
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 31
    result = _unstall("trace", "job.sqlite", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "rank 1" in result.stdout
