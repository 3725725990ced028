"""The Python API: cheap to import, without effect outside a recording, and a report of a block."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest

import unstall
from unstall.report.schema import schema


def python(program, *, cwd=None):
    """Run a program in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---------------------------------------------------------------- importing


@pytest.mark.parametrize("use", ["import unstall", "from unstall import span, steps, profile, run"])
def test_importing_it_imports_nothing_heavy(use):
    program = (
        f"import sys; {use}; print([name for name in ('torch', 'numpy', 'msgspec', 'psutil') if name in sys.modules])"
    )
    assert python(program).strip() == "[]"


def test_its_names_are_there_and_no_others():
    assert {"Report", "profile", "run", "span", "steps"} <= set(dir(unstall))
    assert unstall.Report.__name__ == "Report"
    assert isinstance(unstall.__version__, str)
    with pytest.raises(AttributeError, match="no_such_name"):
        unstall.no_such_name


# ---------------------------------------------------------------- outside a recording


def test_a_span_outside_a_recording_does_nothing():
    with unstall.span("api.block"):
        pass

    @unstall.span
    def bare(x):
        return x + 1

    @unstall.span("api.named")
    def named(x):
        return x + 2

    assert (bare(1), named(1)) == (2, 3)
    with pytest.raises(ValueError, match="passed on"), unstall.span("api.block"):
        raise ValueError("passed on")
    with pytest.raises(TypeError):
        unstall.span(3)


@pytest.mark.parametrize("items", [[], [1, 2, 3], "abc", range(5), {"a": 1}, iter([1, 2])])
def test_steps_pass_the_items_on(items):
    expected = list(items) if not hasattr(items, "__next__") else [1, 2]
    assert list(unstall.steps(items)) == expected


def test_steps_ask_for_an_item_only_when_it_is_wanted():
    asked = []

    def numbers():
        for number in range(10):
            asked.append(number)
            yield number

    loop = unstall.steps(numbers())
    assert asked == []
    assert next(loop) == 0
    assert asked == [0]


def test_breaking_out_of_steps_closes_the_generator():
    closed = []

    def numbers():
        try:
            yield from range(10)
        finally:
            closed.append(True)

    for number in unstall.steps(numbers()):
        if number == 2:
            break
    assert closed == [True]


def test_what_the_iterable_raises_is_passed_on():
    def broken():
        yield 1
        raise KeyError("its own")

    loop = unstall.steps(broken())
    assert next(loop) == 1
    with pytest.raises(KeyError, match="its own"):
        next(loop)
    with pytest.raises(TypeError):
        next(unstall.steps(3))


def test_a_report_is_for_after_the_block():
    run = unstall.profile()
    with pytest.raises(RuntimeError, match="after"):
        run.report()


# ---------------------------------------------------------------- recording a block

PROGRAM = """
import torch
import unstall

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

@unstall.span
def make_batch():
    return torch.randn(32, 64)

def train(steps):
    for _ in unstall.steps(range(steps)):
        loss = model(make_batch()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def must_raise(action):
    try:
        action()
    except RuntimeError:
        return
    raise SystemExit(f"{action} must raise")

with unstall.profile() as first:
    must_raise(unstall.profile().__enter__)
    must_raise(first.report)
    train(60)
reports = [first.report()]
assert first.report() is reports[0]
train(5)  # outside: not recorded

try:
    with unstall.profile() as second:
        train(40)
        raise KeyError("mine")
except KeyError:
    reports.append(second.report())
print("[" + ",".join(report.to_json().decode() for report in reports) + "]")
"""


def test_blocks_that_are_profiled_have_a_report_each(tmp_path):
    """One program for all of it: torch takes seconds to import."""
    reports = json.loads(python(PROGRAM, cwd=tmp_path))
    for report, steps in zip(reports, [60, 40]):
        jsonschema.validate(report, schema())
        assert 0 < report["run"]["steps"] + report["run"]["warmup_steps"] <= steps
        names = {phase["name"] for phase in report["phases"]}
        assert {"forward", "backward", "optimizer"} <= names
        assert sum(phase["share"] for phase in report["phases"]) == pytest.approx(1, abs=0.02)
        (span,) = [span for span in report["spans"] if span["name"] == "make_batch"]
        assert span["count"] == steps
        assert report["verdict"]["evidence"]
    assert len(reports) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_block_without_a_loop_has_a_report_too(tmp_path):
    program = """
import unstall
with unstall.profile() as run:
    sum(range(1000))
report = run.report()
print(report.run.steps, report.verdict.confidence)
"""
    assert python(program, cwd=tmp_path).split() == ["0", "low"]


# ---------------------------------------------------------------- in a notebook

BLOCK = """
import unstall
with unstall.profile() as run:
    sum(range(1000))
report = run.report()
"""


@pytest.mark.parametrize(
    "given",
    [
        f"{BLOCK}shown = report._repr_html_()",
        f"{BLOCK}shown = unstall.Report.from_json(report.to_json())._repr_html_()",
        "import unstall; shown = unstall.run(['empty.py'])._repr_html_()",
    ],
    ids=["profile", "Report", "run"],
)
def test_a_notebook_shows_what_the_api_gives(given, tmp_path):
    (tmp_path / "empty.py").touch()
    shown = python(f"{given}\nprint(shown)", cwd=tmp_path)
    assert shown.startswith('<div class="unstall inline">') and "no step was seen" in shown


def test_a_notebook_shows_a_report_read_from_json(tmp_path):
    text = python(f"{BLOCK}print(report.to_json().decode())", cwd=tmp_path)
    (tmp_path / "report.json").write_text(text)
    shown = python(
        "import unstall; print(unstall.Report.from_json(open('report.json').read())._repr_html_())", cwd=tmp_path
    )
    assert shown.startswith('<div class="unstall inline">')


def test_the_records_know_no_view():
    program = "import sys; from unstall.records.report import Report; print(Report._repr_html_(None))"
    program += "; print([name for name in sys.modules if name.startswith('unstall.report')])"
    assert python(program).split() == ["None", "[]"]
