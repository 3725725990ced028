"""What --stub, --delay and --set of `unstall simplify` ask for."""

from __future__ import annotations

import pytest

from unstall.runs.errors import Refused
from unstall.runs.experiments import parse


def test_each_becomes_an_experiment_in_the_order_of_the_options():
    asked = parse(["Photos.decode", "env"], ["backward=+20%"], ["workers=4"])
    assert [one.name for one in asked] == ["without Photos.decode", "without env", "backward +20%", "4 workers"]
    assert asked[2].share == pytest.approx(0.2)


def test_functions_are_named_as_python_names_them():
    (inner,) = parse(["main.<locals>.decode"], [], [])
    assert inner.name == "without main.decode"


def test_a_delay_that_sleeps_takes_no_core():
    (asleep,) = parse([], ["decode=50%:sleep"], [])
    assert asleep.name == "decode +50% asleep"


def test_one_rank_alone_may_be_slowed():
    (one,) = parse([], ["backward@1=+50%"], [])
    assert (one.name, one.arm[0]["rank"], one.component, one.share) == ("rank 1: backward +50%", 1, None, 0.5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((["a b"], [], []), "--stub a b: give a function"),
        (([], ["decode"], []), "write it as NAME=.20%"),
        (([], ["decode=+0%"], []), "write it as NAME=.20%"),
        (([], ["validation=+20%"], []), "can be slowed"),
        (([], [], ["batch=4"]), "NAME one of"),
        (([], [], ["ranks=2"]), "ranks can only be 1"),
        (([], [], ["keep-memory=2"]), "keep-memory can only be 1"),
        (([], [], ["threads=0"]), "threads must be at least 1"),
    ],
)
def test_what_is_not_written_so_is_refused(options, says):
    with pytest.raises(Refused, match=says):
        parse(*options)
