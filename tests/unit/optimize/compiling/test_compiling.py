"""Loops that are compiled: which statements go, what the file then says, and that it computes the same."""

from __future__ import annotations

import math
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from compiled_loops import agree, both, changed, line_of
from hypothesis import given, settings
from hypothesis import strategies as st
from optimize_builders import make_module

from unstall.optimize.compiling import compiled
from unstall.optimize.source.errors import AnalysisRefused

pytest.importorskip("numba")


EDIT_DISTANCE = """
    def distance(a, b):
        previous = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            current = [i]
            for j, y in enumerate(b, 1):
                current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
            previous = current
        return previous[-1]
    """


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.lists(st.integers(0, 5), min_size=1, max_size=12))
@settings(max_examples=20, deadline=None)
def test_one_row_after_the_other(a, b):
    if not hasattr(test_one_row_after_the_other, "both"):
        test_one_row_after_the_other.both = both(EDIT_DISTANCE, "current.append", "distance")
    old, new, loop = test_one_row_after_the_other.both
    assert new(a, b) == old(a, b)
    assert all(kernel is not None for kernel in loop.kernels.values())


def test_text_is_compared_as_text():
    assert agree(EDIT_DISTANCE, "current.append", "distance", "kitten", "sitting") == 3


def test_the_loop_becomes_a_function_and_the_rest_of_the_file_stays():
    code = changed(
        """
        import torch

        FRAME = 4  # samples


        def energies(sounds):
            # one row after the other
            energies = []
            for sound in sounds.tolist():
                total = 0.0
                for value in sound[:FRAME]:
                    total += value * value  # squared
                energies.append(total)
            return torch.tensor(energies)
        """,
        "total += ",
    )
    assert textwrap.dedent(
        """
        @_compiled()
        def _energies_loop(sounds, FRAME):
            # one row after the other
            energies = []
            for sound in sounds:
                total = 0.0
                for value in sound[:FRAME]:
                    total += value * value  # squared
                energies.append(total)
            return energies


        FRAME = 4  # samples


        def energies(sounds):
            energies = _energies_loop(_Listed(sounds), FRAME)
            return torch.tensor(energies)
        """
    ).strip() in code.replace("\n\n\n\n", "\n\n\n")


def test_rows_of_a_tensor_are_those_of_its_list():
    source = """
        def nearest(points, centres):
            found = []
            for x, y in points.tolist():
                best, place = 1e9, -1
                for i, (u, v) in enumerate(centres.tolist()):
                    distance = (x - u) ** 2.0 + abs(y - v)
                    if distance < best:
                        best, place = distance, i
                found.append(place)
            return found
        """
    generator = torch.Generator().manual_seed(1)
    points, centres = torch.rand(20, 2, generator=generator), torch.rand(5, 2, generator=generator).requires_grad_()
    assert len(set(agree(source, "distance < best", "nearest", points, centres))) > 1


SPRINGS = """
    def integrate(places, speeds, turns):
        place, speed = {listed}
        for _ in range(turns):
            for i in range(len(place)):
                speed[i] -= 0.125 * (place[i] - place[i - 1])
            for i in range(len(place)):
                place[i] += 0.5 * speed[i]
        return {given}
    """


def test_items_are_set_in_the_list_that_is_made_of_an_array():
    source = SPRINGS.format(listed="places.tolist(), speeds.tolist()", given="(place, speed)")
    old, new, loop = both(source, "speed[i] -=", "integrate")
    assert "turns" in loop.loop.__code__.co_varnames  # the outer loop
    for places, speeds in (
        (np.arange(5) * 0.25, torch.zeros(5)),
        (np.arange(5), np.zeros(5)),  # a list of integers that becomes one of floats
    ):
        before = places.copy()
        expected, result = old(places, speeds, 7), new(places, speeds, 7)
        assert result == expected
        assert (places == before).all() and not speeds.any()
    of_floats, *_ = loop.kernels.values()
    assert of_floats is not None


def test_two_lists_of_one_array_are_two():
    source = SPRINGS.format(listed="places.tolist(), places.tolist()", given="(place, speed)")
    old, new, _ = both(source, "speed[i] -=", "integrate")
    places = np.arange(5) * 0.25
    assert new(places, None, 3) == old(places, None, 3)


def test_a_list_that_is_made_in_each_turn_begins_anew():
    source = """
        def totals(values, turns):
            total = 0.0
            for _ in range(turns):
                rest = values.tolist()
                for i in range(len(rest)):
                    rest[i] *= 0.5
                    total += rest[i]
            return total
        """
    old, new, _ = both(source, "rest[i] *=", "totals")
    values = np.array([1.0, 3.0])
    assert new(values, 3) == old(values, 3)


@pytest.mark.parametrize("of", ["values", "self.values"])
def test_a_list_of_what_changes_meanwhile_is_refused(of):
    source = textwrap.dedent(
        f"""
        def totals(self, values, turns):
            total = 0.0
            for turn in range(turns):
                {of}[0] = 2.0 * turn
                rest = {of}.tolist()
                for i in range(len(rest)):
                    total += rest[i]
            return total
        """
    )
    with pytest.raises(AnalysisRefused, match="changes what lists are made of"):
        compiled(make_module(source), line_of(source, f"{of}[0]"))
    old, new, _ = both(source, "total += rest[i]", "totals")  # the inner loop alone
    mine = SimpleNamespace(values=np.ones(5))
    assert new(mine, np.ones(5), 5) == old(SimpleNamespace(values=np.ones(5)), np.ones(5), 5) == 40.0


def test_a_row_that_is_given_twice_is_one_list():
    source = """
        def first(table, turns):
            rows = table.tolist()
            for i in range(turns):
                rows[0][0] += i
            return rows, rows[0]
        """
    old, new, loop = both(source, "rows[0][0] +=", "first")
    table = np.eye(2)
    rows, row = new(table, 3)
    assert (rows, row) == old(table, 3)
    assert rows[0] is row
    assert [*loop.kernels.values()] == [None]


def test_cells_of_nested_lists_are_set_in_the_lists_themselves():
    source = """
        def relax(grid, size, rate):
            for y in range(1, size - 1):
                for x in range(1, size - 1):
                    grid[y][x] = grid[y][x] + rate * (grid[y - 1][x] - grid[y][x + 1])
        """
    grid = [[float(x * y % 7) for x in range(6)] for y in range(6)]
    agree(source, "grid[y][x] =", "relax", grid, 6, 0.25)


def test_a_list_that_is_given_twice_is_left_to_python():
    old, new, loop = both(
        """
        def shift(a, b):
            for i in range(1, len(a)):
                a[i] = b[i - 1] + 1.0
        """,
        "a[i] =",
        "shift",
    )
    same_old, same_new = [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]
    old(same_old, same_old)
    new(same_new, same_new)
    assert same_new == same_old == [1.0, 2.0, 3.0]
    assert loop.kernels


def test_items_of_a_tensor_are_set_in_it():
    source = """
        import torch

        def match(values, limit):
            target = torch.zeros(len(values), 3)
            for i, row in enumerate(values.tolist()):
                for j in range(3):
                    if row[j] > limit:
                        target[i, j] = row[j] * 1.1
            return target
        """
    values = torch.arange(12.0).view(4, 3)
    assert agree(source, "target[i, j]", "match", values, 3.0).count_nonzero() == 8


def test_numbers_taken_of_an_array_one_by_one_are_those_of_its_list():
    source = """
        def pad(tokens, longest):
            row, mask = [], []
            for position in range(longest):
                if position < len(tokens):
                    row.append(int(tokens[position]))
                    mask.append(1.0)
                else:
                    row.append(0)
                    mask.append(0.0)
            return row, mask
        """
    assert agree(source, "row.append(0)", "pad", np.arange(3, dtype=np.int32), 5)[0] == [0, 1, 2, 0, 0]
    assert "_Listed(tokens)" in changed(source, "row.append(0)")


def test_items_asked_one_by_one_are_indexed_as_lists():
    source = """
        def trace(matrix):
            total = 0.0
            for i in range(len(matrix)):
                total += matrix[i, i].item() * 2.0
            return total
        """
    assert "matrix[i][i] * 2.0" in changed(source, "total +=")
    agree(source, "total +=", "trace", torch.rand(5, 5, dtype=torch.float64))


def test_attributes_are_passed_and_a_loop_may_leave_the_function():
    source = """
        class Search:
            def __init__(self):
                self.limit = 3

            def first(self, values):
                for i, value in enumerate(values):
                    if value > self.limit:
                        return i
                return None


        def first(values):
            return Search().first(values)
        """
    assert agree(source, "value > self", "first", [1, 2, 5, 7]) == 2
    assert agree(source, "value > self", "first", [1, 2]) is None


def test_errors_are_those_of_python():
    old, new, _ = both(
        """
        def means(values, counts):
            out = []
            for i in range(len(values)):
                out.append(values[i] / counts[i])
            return out
        """,
        "out.append",
        "means",
    )
    for arguments, error in ((([1.0], [0]), ZeroDivisionError), (([1.0, 2.0], [1]), IndexError)):
        for function in (old, new):
            with pytest.raises(error):
                function(*arguments)


ROWS = """
    def drop(cells):
        kept = []
        for row in cells:
            kept.append({row})
        for y in range(len(kept)):
            kept[y][0] = -1.0
        return kept
    """


def test_rows_that_are_copied_are_a_lists_own():
    agree(ROWS.format(row="row[:]"), "kept[y][0]", "drop", [[1.0, 2.0], [3.0, 4.0]])


def test_rows_of_an_argument_stay_its_rows():
    old, new, loop = both(ROWS.format(row="row"), "kept.append", "drop")
    cells_old, cells_new = [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]
    assert new(cells_new) == old(cells_old)
    assert cells_new == cells_old == [[-1.0, 2.0], [-1.0, 4.0]]
    assert [*loop.kernels.values()] == [None]


def test_to_set_items_of_rows_of_an_argument_is_refused():
    source = textwrap.dedent(
        """
        def drop(cells):
            kept = []
            for row in cells:
                kept.append(row)
                kept[0][0] = -1.0
            return [kept]
        """
    )
    with pytest.raises(AnalysisRefused, match="may change a part of something else"):
        compiled(make_module(source), line_of(source, "kept.append"))


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        pytest.param("out.append(values[i] + values[i])", ([[1.0], [2.0]],), id="lists are joined"),
        pytest.param("out[0] = values[i] / 2", ([1, 3],), id="a list of integers gets a float"),
        pytest.param("out.append(values[i] * 3)", (np.float32([0.1, 0.2]),), id="numbers of 32 bits"),
        pytest.param("out.append(values[i] * 3)", (torch.tensor([0.1, 0.2]),), id="tensors without a gradient"),
        pytest.param("out.append(values[i] * 3)", ([1, 2.5],), id="integers and floats"),
        pytest.param("out.append(values[i] ** 2)", ([3**30, 2],), id="integers that would overflow"),
        pytest.param("out.append(values[i] + 1)", ([2**70, 2],), id="integers too long"),
        pytest.param("out.append(values[i] * 2)", ([[1.0], [2.0, 3.0]],), id="rows of several lengths"),
        pytest.param("out.append(1 if values[i] else 2)", ([[], [1.0]],), id="an empty row is false"),
    ],
)
def test_what_would_not_mean_the_same_is_left_to_python(body, arguments):
    source = f"""
        def double(values):
            out = [0]
            for i in range(len(values)):
                {body}
            return out
        """
    old, new, loop = both(source, "out.append" if "append" in body else "out[0]", "double")
    assert repr(new(*arguments)) == repr(old(*arguments))
    assert not any(kernel is not None for kernel in loop.kernels.values())


def test_division_by_zero_of_an_array_is_numpys():
    old, new, loop = both(
        """
        def ratios(a, b, out):
            for i in range(len(a)):
                out[i] = a[i] / b[i]
            return len(a)
        """,
        "out[i]",
        "ratios",
    )
    arrays = [np.array([1.0, 0.0, 3.0]), np.array([0.0, 0.0, 2.0])]
    results = [np.zeros(3), np.zeros(3)]
    with np.errstate(all="ignore"):
        old(*arrays, results[0])
    new(*arrays, results[1])
    assert results[0].tobytes() == results[1].tobytes()
    assert math.isinf(results[1][0])
    assert all(kernel is not None for kernel in loop.kernels.values())


def test_the_inner_loop_is_taken_where_the_outer_one_does_more():
    source = """
        def total(rows, log):
            result = 0.0
            for row in rows:
                log.write("row")
                part = 0.0
                for value in row:
                    part += value * 0.1
                result += part
            return result
        """
    code = changed(source, "part += ")
    assert "        part = _total_loop(row)\n        result += part\n" in code


def test_items_that_are_added_to_a_row_are_appended():
    source = """
        def features(sounds, frame):
            features = []
            for sound in sounds:
                row = []
                for start in range(0, len(sound), frame):
                    crossings, energy = 0, 0.0
                    for value in sound[start : start + frame]:
                        energy += value * value
                        crossings += value < 0
                    row += [crossings / frame, energy]  # of a frame
                features.append(row)
            return features
        """
    agree(source, "energy += ", "features", [[0.5, -1.0, 2.0, 3.0], [-0.5, -1.0, -2.0, 3.0]], 2)
