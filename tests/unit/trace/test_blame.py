"""Who made a call."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from gpu_programs import Program

from unstall.trace.blame import TraceBlame, is_users, parse_frame, tidy


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("train.py(12): step", ("step", "train.py", 12)),
        ("/a b/x(1).py(3): <lambda>", ("<lambda>", "/a b/x(1).py", 3)),
        ("nn.Module: Linear_0", None),
        ("<built-in method item of Tensor object at 0x7f>", None),
        ("aten::mm", None),
        ("", None),
    ],
)
def test_frames_are_parsed(name, frame):
    assert parse_frame(name) == frame


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("train.py(12): step", True),
        ("/home/me/project/data.py(3): load", True),
        ("torch/nn/modules/module.py(1511): _call_impl", False),
        ("/usr/lib/python3.11/site-packages/foo/bar.py(2): f", False),
        ("threading.py(992): run", False),
        ("<frozen runpy>(88): _run_code", False),
        ("numpy/core/numeric.py(5): resize", False),
    ],
)
def test_the_users_own_frames(name, users):
    assert is_users(name) is users


def test_names_are_tidied():
    assert tidy("autograd::engine::evaluate_function: MulBackward0") == "MulBackward0"
    assert tidy("## forward ##") == "forward"
    assert tidy("nn.Module: Linear_0") == "Linear_0"


def test_what_is_around_a_call():
    program = Program()
    around = {
        "ProfilerStep#1": "user_annotation",
        "train.py(5): main": "python_function",
        "encode": "user_annotation",
        "block": "user_annotation",
        "nn.Module: Net_0": "python_function",
        "nn.Module: Linear_1": "python_function",
        "aten::linear": "cpu_op",
    }
    with ExitStack() as stack:
        for name, cat in around.items():
            stack.enter_context(program.inside(name, cat))
            program.busy(1.0)
        program.launch(10.0, operator="aten::addmm")
    timeline = program.timeline()
    blame = TraceBlame(timeline)
    origin = blame.origin(timeline.launch)
    named = {key: blame.name(int(rows[0])) for key, rows in vars(origin).items()}
    assert named == {
        "operator": "aten::linear",
        "annotation": "block",
        "region": "encode",
        "module": "Linear_1",
        "function": "train.py(5): main",
    }
    culprit = blame.culprit(int(timeline.launch[0]), 0.25)
    assert (culprit.function, culprit.file, culprit.line, culprit.via) == ("main", "train.py", 5, "aten::linear")


def test_without_python_frames_the_operator_is_blamed_and_its_range_told():
    program = Program()
    with program.step(), program.inside("encode", "user_annotation"):
        program.launch(10.0, operator="aten::relu")
    timeline = program.timeline()
    culprit = TraceBlame(timeline).culprit(int(timeline.launch[0]), 2.0)
    assert (culprit.function, culprit.file, culprit.share) == ("aten::relu", "", 1.0)
    assert culprit.via == "encode, cudaLaunchKernel"
    assert TraceBlame(timeline).culprit(-1, 0.5) is None
