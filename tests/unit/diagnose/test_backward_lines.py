"""Samples of backward at the lines whose gradients it computes: as many in all, and nothing else is touched."""

from __future__ import annotations

import pytest
from blamecase import TEXT, blame_of, sites
from factory import BACKWARD, CALL, Source, stack
from hypothesis import given
from hypothesis import strategies as st

from unstall.diagnose.placing import count
from unstall.records.model import OperatorLine
from unstall.records.observations import Frame

ENGINE = BACKWARD.__class__("_engine_run_backward", BACKWARD.file.replace("__init__", "graph"), 20)


@pytest.fixture
def code(tmp_path):
    return Source(tmp_path / "train.py", TEXT)


def line(code, backward_s, *places):
    return OperatorLine(tuple(code.at(*place) for place in places), 1.0, backward_s)


def blamed(code, operators, *more):
    computing = stack(code.at("train", "# call backward"), BACKWARD, ENGINE, count=60)
    return blame_of([computing, *more], sites=sites(code), operators=operators)


def test_what_backward_takes_is_at_the_lines_of_forward(code):
    forward = (("train", "# call model"), ("Net.forward", "# forward"))
    operators = [line(code, 3.0, *forward), line(code, 1.0, ("train", "# call penalty"), ("penalty", "# penalty"))]
    outside = stack(code.at("train", "# call model"), CALL, code.at("forward", "# forward"), count=20)
    blame = blamed(code, [*operators, OperatorLine((), 0.0, 2.0)], outside)
    moved = {placed.program[-1][1].qualname: placed.count for placed in blame.in_phase("backward")}
    assert moved == {"Net.forward": 30, "penalty": 10, "train": 20}
    assert blame.total == 80
    assert blame.main_culprit(blame.in_phase("forward", "backward")).function == "Net.forward"


def test_python_code_that_backward_calls_stays_where_it_is(code):
    hook = stack(code.at("train", "# call backward"), BACKWARD, ENGINE, code.at("tidy", "# tidy"), count=40)
    operators = [line(code, 1.0, ("train", "# call model"), ("Net.forward", "# forward"))]
    blame = blamed(code, operators, hook)
    moved = {placed.program[-1][1].qualname: placed.count for placed in blame.in_phase("backward")}
    assert moved == {"Net.forward": 60, "tidy": 40}
    assert blame.called_share == 0.4 and blamed(code, operators).called_share == blame_of([]).called_share == 0.0


def test_what_a_checkpoint_computes_again_is_no_hook(code):
    again = Frame("recompute_fn", BACKWARD.file.replace("autograd/__init__", "utils/checkpoint"), 30)
    stacks = stack(code.at("train", "# call backward"), BACKWARD, ENGINE, again, code.at("forward", "# forward"))
    assert blamed(code, [], stacks).called_share == 0.0


def test_without_an_account_of_operators_the_model_is_what_forward_shows(code):
    outside = stack(code.at("train", "# call model"), CALL, code.at("forward", "# forward"), count=20)
    blame = blamed(code, [], outside)
    assert blame.main_culprit(blame.of_model()).function == "Net.forward"


def test_without_an_account_of_operators_nothing_moves(code):
    for operators in ([], [OperatorLine((), 0.0, 2.0)], [line(code, 0.0, ("train", "# call model"))]):
        (placed,) = blamed(code, operators).in_phase("backward")
        assert placed.program[-1][0] == code.at("train", "# call backward")


@given(st.lists(st.tuples(st.integers(1, 200), st.floats(0, 10)), min_size=1, max_size=6))
def test_no_sample_is_lost_or_made(tmp_path_factory, given_lines):
    code = Source(tmp_path_factory.mktemp("program") / "train.py", TEXT)
    operators = [line(code, seconds, ("train", "# call model"), ("forward", "# forward")) for _, seconds in given_lines]
    more = [stack(code.at("train", "# call backward"), BACKWARD, ENGINE, count=hits) for hits, _ in given_lines]
    blame = blamed(code, operators, *more)
    assert count(blame.main) == 60 + sum(hits for hits, _ in given_lines)
