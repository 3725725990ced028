"""Rows of pandas frames in loops: the same values as pandas gives, and only where the loop leaves the frame as it is."""

from __future__ import annotations

import libcst as cst
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.remedies.frame_rows import REMEDY
from unstall.optimize.rewrites.frame_rows import by_columns, row_accesses
from unstall.optimize.runtime.each_row import _each_row
from unstall.optimize.runtime.frame_rows import _Frame, _values
from unstall.optimize.source.errors import NotApplicable
from unstall.records.observations import Frame, StackSample
from unstall.records.report import Hotspot

BATCHES = """import numpy as np


class Loader:
    def __init__(self, frame):
        self.frame = frame

    def sessions(self, slices):
        items, times = [], []
        # one by one
        for index in slices:
            rows = self.frame[index]
            items.append(rows["item"].values)
            times.append(rows["time"].to_numpy().sum())
        return items, times

    def users(self, numbers):
        found = []
        for number in numbers:
            row = self.frame.iloc[number]
            found.append((row["item"], row.name, self.frame["time"].iloc[number]))
        return found

    def totals(self):
        total = 0.0
        for label, row in self.frame.iterrows():
            total += row["time"] * label
        return total
"""


def rewritten(source, function):
    """The source with what one function takes of frames taken from columns; as it is where nothing is."""
    module = make_module(source)
    (definition,) = (found for found in module.all(cst.FunctionDef) if found.name.value == function)
    accesses = list(row_accesses(module, definition))
    return by_columns(module, definition, accesses).code if accesses else source


def run(source, frame, function, *args):
    space: dict = {}
    exec(compile(source, "loader.py", "exec"), space)
    return getattr(space["Loader"](frame), function)(*args)


FRAME = pd.DataFrame({"item": np.arange(20), "time": np.linspace(0, 1, 20), "name": [f"n{i}" for i in range(20)]})


def test_columns_are_looked_up_once_before_the_loop_below_its_comment():
    changed = rewritten(BATCHES, "sessions")
    assert (
        "        # one by one\n        frame_rows = _Frame(self.frame)\n        for index in slices:\n"
        "            rows = frame_rows.plain(index)\n"
        '            items.append(_values(rows, "item"))\n'
        '            times.append(_values(rows, "time").sum())\n'
    ) in changed
    assert "def _each_row" not in changed
    slices = [slice(0, 3), slice(2, 2), slice(-4, None)]
    before, after = (run(source, FRAME, "sessions", slices) for source in (BATCHES, changed))
    assert [items.tolist() for items in before[0]] == [items.tolist() for items in after[0]]
    assert before[1] == after[1]


def test_rows_and_cells_by_number_are_the_same_values_of_the_same_types():
    changed = rewritten(BATCHES, "users")
    assert "row = frame_rows.rows(number)" in changed and "frame_rows_2.cell(number)" in changed
    before, after = (run(source, FRAME, "users", [0, 5, -1, np.int64(7)]) for source in (BATCHES, changed))
    assert before == after
    assert [[type(value) for value in row] for row in before] == [[type(value) for value in row] for row in after]


def test_rows_one_after_the_other():
    changed = rewritten(BATCHES, "totals")
    assert "for label, row in _each_row(self.frame):" in changed and "class _Frame" not in changed
    assert run(BATCHES, FRAME, "totals") == run(changed, FRAME, "totals")


@pytest.mark.parametrize(
    "body",
    [
        'row = self.frame.iloc[i]\n            found.append((row, row["item"]))',  # the row itself is kept
        'row = self.frame.iloc[i]\n            row["item"] = 3\n            found.append(row["item"])',
        'row = self.frame.iloc[i]\n            row = row["item"]',
        'row = self.frame.iloc[i]\n            found.append(row["item"])\n            self.frame["item"] = 3',
        'row = self.frame.iloc[i]\n            found.append(row["item"])\n            self.frame.loc[i, "item"] = 3',
        'row = self.frame.iloc[i]\n            found.append(row["item"])\n            self.frame = self.frame[1:]',
        'row = self.frame.iloc[i]\n            found.append(row["item"])\n            self.frame.pop("item")',
        'row = self.frame.iloc[i]\n            found.append(row["item"])\n            self.frame.drop(columns="a", inplace=True)',
        'row = self.frame.iloc[i]\n            found.append(row["item"])\n            self.shuffle()',
        'row = self.frame.iloc[i, 0]\n            found.append(row["item"])',
        'row = self.frame[i]\n            found.append(row["item"])',  # of anything
    ],
)
def test_a_frame_that_changes_or_a_row_that_is_kept_is_left_as_it_is(body):
    source = f"""
class Loader:
    def __init__(self, frame):
        self.frame = frame

    def shuffle(self):
        self.frame["item"] = self.frame["item"].values[::-1]

    def users(self, numbers):
        found = []
        for i in numbers:
            {body}
        return found
"""
    assert rewritten(source, "users") == source


def test_the_frame_of_an_outer_loop_is_looked_up_in_the_inner_one():
    source = """
def sums(frames):
    total = 0
    for frame in frames:
        for i in range(len(frame)):
            row = frame.iloc[i]
            total += row["item"]
    return total
"""
    changed = rewritten(source, "sums")
    assert "        frame_rows = _Frame(frame)\n        for i in range" in changed
    spaces: list[dict] = [{}, {}]
    for text, space in zip((source, changed), spaces):
        exec(text, space)
    assert spaces[0]["sums"]([FRAME, FRAME[:0]]) == spaces[1]["sums"]([FRAME, FRAME[:0]]) == 190


def test_what_is_no_frame_stays_what_it_is():
    changed = rewritten(BATCHES, "sessions").replace("_values(rows, ", "len(")  # a list of lists
    assert "_Frame(self.frame)" in changed
    assert _Frame([1, 2, 3]).plain(slice(0, 2)) == [1, 2]


COLUMNS = {
    "int": st.integers(-5, 5),
    "float": st.floats(allow_nan=True, width=32),
    "bool": st.booleans(),
    "text": st.text(max_size=3),
    "mixed": st.one_of(st.none(), st.integers(0, 3), st.text(max_size=2)),
    "time": st.datetimes(min_value=pd.Timestamp("1990-01-01"), max_value=pd.Timestamp("2030-01-01")),
}


@st.composite
def frames(draw):
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True))
    rows = draw(st.integers(1, 6))
    frame = pd.DataFrame({name: draw(st.lists(COLUMNS[name], min_size=rows, max_size=rows)) for name in names})
    if "int" in names and draw(st.booleans()):
        frame = frame.astype({"int": draw(st.sampled_from(["int8", "float32", "Int64", "category"]))})
    return frame if draw(st.booleans()) else frame.set_axis([f"r{number}" for number in range(rows)], axis=0)


def same(one, other):
    return type(one) is type(other) and (one is other or one == other or (one != one and other != other))


@given(frames(), st.data())
def test_whatever_a_frame_holds_the_values_are_those_of_pandas(frame, data):
    number = data.draw(st.integers(-len(frame), len(frame) - 1))
    quick, row = _Frame(frame), frame.iloc[number]
    for name in frame.columns:
        assert same(quick.rows(number)[name], row[name])
        assert same(_Frame(frame[name]).cell(number), frame[name].iloc[number])
        cut = slice(0, number)
        assert all(map(same, _values(quick.rows(cut), name), frame.iloc[cut][name].values))
        assert all(map(same, _values(quick.plain(cut), name), frame[cut][name].values))
    assert quick.rows(number).name == row.name and list(quick.rows(number).index) == list(row.index)
    for (label, one), (label_of_pandas, other) in zip(_each_row(frame), frame.iterrows()):
        assert label == label_of_pandas and one.name == other.name
        assert all(same(one[name], other[name]) for name in frame.columns)


def test_rows_of_dates_and_gaps_alone_are_those_of_pandas():
    frame = pd.DataFrame({"float": [0.0, np.nan], "time": [pd.Timestamp("2000-01-01")] * 2})
    for (_, one), (_, other) in zip(_each_row(frame), frame.iterrows()):
        assert same(one["float"], other["float"])


def case(tmp_path, *, pandas=True):
    (tmp_path / "train.py").write_text(BATCHES)
    line = 1 + BATCHES.splitlines().index("            rows = self.frame[index]")
    below = [Frame("__getitem__", "/env/lib/python3.11/site-packages/pandas/core/frame.py", 10)] if pandas else []
    stack = (Frame("sessions", str(tmp_path / "train.py"), line), *below)
    spot = Hotspot(function="sessions", file=str(tmp_path / "train.py"), line=line, share=0.6, phase="data_wait")
    shares = {"data_wait": 0.8, "backward": 0.2}
    measurement = make_measurement(phases=shares, samples=[StackSample(1, "MainThread", stack, 60)])
    return make_context(tmp_path, report=make_report(hotspots=[spot], phases=shares), measurement=measurement)


def test_a_loop_in_which_samples_fell_into_pandas_is_proposed(tmp_path):
    (proposal,) = REMEDY.propose(case(tmp_path))
    assert "sessions takes rows from columns (train.py:12)" in proposal.title
    assert proposal.predicted > 2


def test_a_loop_that_waits_for_something_else_is_not(tmp_path):
    with pytest.raises(NotApplicable):
        REMEDY.propose(case(tmp_path, pandas=False))


def test_a_loop_that_takes_no_rows_is_refused_for_that(tmp_path):
    context = case(tmp_path)
    (tmp_path / "train.py").write_text(BATCHES.replace("rows = self.frame[index]", "rows = self.table(index)"))
    with pytest.raises(NotApplicable, match="sessions takes no rows in a loop") as error:
        REMEDY.propose(context)
    assert type(error.value) is NotApplicable
