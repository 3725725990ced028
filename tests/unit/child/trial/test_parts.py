"""The parts of a trial, and what becomes of one that cannot be put in place."""

from __future__ import annotations

import importlib
import sys
import types

import pytest

from unstall.child import trial


@pytest.mark.parametrize("part", trial.PARTS)
def test_each_part_is_a_module_that_the_docstring_names(part):
    assert f"``{part}``" in trial.__doc__
    assert callable(importlib.import_module(f"unstall.child.trial.{part}").targets)


def test_what_changes_is_put_in_place_before_what_is_written_down_and_that_before_the_clock():
    place = trial.PARTS.index
    changing = ("settings", "seed", "shorter", "perturb", "stress")
    assert max(map(place, changing)) < place("observe") < place("account") < place("clock") < place("fault")


def test_a_part_that_cannot_be_put_in_place_is_told_to_the_parent_and_not_to_the_program(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.data.sampler", types.ModuleType("sampler"))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    trial.install({"lone": {}}, str(tmp_path))
    (line,) = (tmp_path / trial.COMPLAINTS_NAME).read_text().splitlines()
    assert line.startswith("torch.utils.data.sampler: AttributeError")
