"""Rows of pandas frames that only become arrays: the same numbers, and only where nothing else is done with them."""

from __future__ import annotations

import libcst as cst
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.remedies.frame_values import REMEDY
from unstall.optimize.rewrites.frame_values import by_values, rows_as_arrays
from unstall.optimize.source.errors import NotApplicable
from unstall.records.observations import Frame, StackSample
from unstall.records.report import Hotspot

WINDOWS = """import numpy as np


class Windows:
    def __init__(self, frame, places, length):
        self.frame, self.places, self.length = frame, places, length

    def window(self, place, column):
        rows = []
        indices = self.places.iloc[max(place - self.length, 0) : place + 1, column].values
        for index in indices.reshape(-1):
            if index < 0:
                rows.append(np.full((self.frame.shape[1],), np.nan))
            else:
                rows.append(self.frame.iloc[index])
        return np.array(rows), len(rows)

    def picked(self, numbers):
        return np.stack([self.frame.iloc[number] for number in numbers]), np.asarray(self.frame.iloc[numbers[0]])

    def column(self, number):
        return self.frame["a"].iloc[number:].to_numpy()
"""


def rewritten(source, function):
    """The source with one function's rows taken of arrays; as it is where none are."""
    module = make_module(source)
    (definition,) = (found for found in module.all(cst.FunctionDef) if found.name.value == function)
    rows = list(rows_as_arrays(module, definition))
    return by_values(module, rows).code if rows else source


def run(source, function, *arguments):
    space: dict = {}
    exec(compile(source, "windows.py", "exec"), space)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3)), columns=list("abc"))
    places = pd.DataFrame(np.arange(-3, 15).reshape(9, 2) % 9 - 1)
    return getattr(space["Windows"](frame, places, 4), function)(*arguments)


@pytest.mark.parametrize(
    ("function", "arguments", "written"),
    [
        ("window", (5, 1), ("rows.append(self.frame.values[index])", "+ 1, column]\n")),
        ("picked", ([0, 4, -1],), ("[self.frame.values[number] for", "np.asarray(self.frame.values[numbers[0]])")),
        ("column", (3,), ('return self.frame["a"].values[number:]\n',)),
    ],
)
def test_they_are_taken_of_the_frames_array_with_the_same_numbers(function, arguments, written):
    changed = rewritten(WINDOWS, function)
    assert all(text in changed for text in written)
    before, after = (run(source, function, *arguments) for source in (WINDOWS, changed))
    for one, other in zip(before, after):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "body",
    [
        "rows.append(self.frame.iloc[i])\n            return rows",  # rows of pandas are what is wanted
        "rows.append(self.frame.iloc[i])\n            print(rows[0].name)",
        "rows.append(self.frame.loc[i])",  # by label
        "rows.append(self.frame.iloc[[1, 2], [0, 1]])",  # all pairs, of an array two
        "rows.append(self.frame.iloc[lambda frame: [0]])",
        "rows.append(self.read().iloc[i])",
        "row = self.frame.iloc[i].values\n            row[0] = 3",  # the frame's own numbers
        "row = self.frame.iloc[i].values\n            row += 3",
        "row = self.frame.iloc[i].values\n            row.sort()",
        "row = self.frame.iloc[i].to_numpy(copy=True)",
        "row = self.frame.iloc[i]",
        "self.frame.iloc[i] = 3",
    ],
)
def test_what_is_anything_else_is_left_as_it_is(body):
    source = f"""import numpy as np


class Windows:
    def window(self, numbers):
        rows = []
        for i in numbers:
            {body}
        return np.array(rows)
"""
    assert rewritten(source, "window") == source


def test_numpy_is_known_by_what_is_imported():
    source = WINDOWS.replace("as np\n", "as np\nfrom numpy import stack as pile\n", 1).replace("np.stack(", "pile(")
    assert "pile([self.frame.values[number] for" in rewritten(source, "picked")
    another = WINDOWS.replace("import numpy as np", "import jax.numpy as np")
    assert rewritten(another, "picked") == another


@given(
    st.lists(st.sampled_from(["int8", "int64", "float32", "float64", "bool"]), min_size=1, max_size=3),
    st.integers(1, 5),
    st.data(),
)
def test_whatever_numbers_a_frame_holds_they_are_those_of_its_rows(dtypes, count, data):
    numbers = np.random.default_rng(0).integers(-5, 5, size=count)
    frame = pd.DataFrame({f"c{at}": numbers.astype(dtype) for at, dtype in enumerate(dtypes)})
    picked = data.draw(st.lists(st.integers(-count, count - 1), min_size=1))
    wanted = np.array([frame.iloc[number] for number in picked])
    got = np.array([frame.values[number] for number in picked])
    np.testing.assert_array_equal(wanted, got)
    assert wanted.dtype == got.dtype


def case(tmp_path, *, pandas=True):
    (tmp_path / "train.py").write_text(WINDOWS)
    line = 1 + WINDOWS.splitlines().index("                rows.append(self.frame.iloc[index])")
    below = [Frame("__getitem__", "/env/lib/python3.11/site-packages/pandas/core/indexing.py", 10)] if pandas else []
    stack = (Frame("window", str(tmp_path / "train.py"), line), *below)
    spot = Hotspot(function="window", file=str(tmp_path / "train.py"), line=line, share=0.6, phase="data_wait")
    shares = {"data_wait": 0.8, "backward": 0.2}
    measurement = make_measurement(phases=shares, samples=[StackSample(1, "MainThread", stack, 60)])
    return make_context(tmp_path, report=make_report(hotspots=[spot], phases=shares), measurement=measurement)


def test_a_function_in_which_samples_fell_into_pandas_is_proposed(tmp_path):
    (proposal,) = REMEDY.propose(case(tmp_path))
    assert "window takes rows of the frame's array (train.py:10)" in proposal.title
    assert proposal.predicted > 2


def test_one_that_waits_for_something_else_is_not(tmp_path):
    with pytest.raises(NotApplicable):
        REMEDY.propose(case(tmp_path, pandas=False))


def test_one_that_makes_no_arrays_is_refused_for_that(tmp_path):
    context = case(tmp_path)
    text = WINDOWS.replace("rows.append(self.frame.iloc[index])", "rows.append(self.frame.iloc[index].name)")
    (tmp_path / "train.py").write_text(text)
    with pytest.raises(NotApplicable, match="window makes no arrays of rows") as error:
        REMEDY.propose(context)
    assert type(error.value) is NotApplicable
