"""Reading the files of a trace: those that cannot be read are left out, unless there is no other."""

from __future__ import annotations

import pytest
from kineto_files import document, small, write

from unstall.runs import trace
from unstall.runs.errors import Refused


class Shown:
    """Keeps what is shown as progress."""

    def __init__(self):
        self.lines = []

    def update(self, phase, steps=0, rate=None):
        self.lines.append(phase)

    def log(self, line):
        self.lines.append(line)


@pytest.fixture
def rank0(tmp_path):
    return write(tmp_path / "rank0.json", document(small(3)))


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "rank1.json"
    path.write_bytes(b"killed")
    return path


def test_a_file_that_cannot_be_read_is_left_out_and_named(rank0, broken):
    report, problems = trace.diagnose([rank0, broken], [], Shown())
    assert report.kind == "trace"
    (problem,) = problems
    assert problem.startswith("left out: ") and "rank1.json" in problem


def test_without_any_other_it_is_refused(broken):
    with pytest.raises(Refused, match=r"rank1\.json"):
        trace.diagnose([broken], [], Shown())
    with pytest.raises(Refused, match=r"rank1\.json"):
        trace.read_first(broken, Shown())


def test_a_what_if_that_makes_no_sense_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(Refused, match="write NAME=FACTOR"):
        trace.diagnose([tmp_path / "not there"], ["launch"], Shown())


def test_large_files_are_read_one_by_one(rank0, broken):
    report, problems = trace.diagnose([rank0, broken], [], Shown(), in_memory_bytes=0)
    assert report.run.steps == 3 and len(problems) == 1


def test_two_traces_are_compared(rank0, tmp_path):
    after = write(tmp_path / "after.json", document(small(3)))
    comparison, problems = trace.compare(rank0, after, Shown())
    assert comparison.ratio == pytest.approx(1) and problems == []
