"""Loops that do more than to compute with numbers, or bind names that others look at: they are refused."""

from __future__ import annotations

import textwrap

import pytest
from compiled_loops import line_of
from optimize_builders import make_module

from unstall.optimize.compiling import compiled
from unstall.optimize.source.errors import AnalysisRefused

pytest.importorskip("numba")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("print(values[i])", "does something else than to compute"),
        ("total[values[i]] = {}", "a dictionary"),
        ("values.append(i)", "appends to a list made elsewhere"),
        ("total = random.random()", "calls random.random"),
        ("yield i", "does something else than to compute"),
        ("self.total = i", "sets an attribute"),
        ("part = values[0]; part[0] = i", "may change a part of something else"),
        ("total = self.model(values[i])", "calls self.model"),
        ("total += sum(x * y for x, y in values)", "takes rows apart in a comprehension"),
        ("total = i if values[i] is None else 0", "has"),
        ("total += sum(map(abs, values))", "calls map"),
        ("values[0:2] = [i]", "sets a slice"),
        ("total += values[i] ** 3", "has a power"),
        ("total += round(values[i], 2)", "rounds to decimal places"),
    ],
)
def test_what_is_more_than_numbers_is_refused(body, reason):
    source = textwrap.dedent(
        f"""
        import random


        def loop(self, values):
            total = 0
            for i in range(len(values)):
                {body}
            return total
        """
    )
    with pytest.raises(AnalysisRefused, match=reason):
        compiled(make_module(source), line_of(source, "for i in"))


@pytest.mark.parametrize(
    ("before", "is_refused"),
    [
        ("if split:\n        low = counts[0]", True),
        ("low = counts[0]", False),
        ("for low in counts:\n        pass", False),
        ("with counts as low:\n        pass", False),
    ],
)
def test_what_is_read_in_one_branch_must_be_bound_in_any_case(before, is_refused):
    source = f"""def total(values, counts, split):
    {before}
    found = 0
    for value in values:
        found += value
        if split:
            found += low
    return found
"""
    module = make_module(source)
    if is_refused:
        with pytest.raises(AnalysisRefused, match="may read low unbound"):
            compiled(module, 6)
    else:
        assert "_total_loop(" in compiled(module, 6).tree.code


def test_a_name_that_may_be_unbound_is_refused():
    source = textwrap.dedent(
        """
        def last(values):
            for value in values:
                if value > 2:
                    found = value
            return [found]
        """
    )
    with pytest.raises(AnalysisRefused, match="may read found unbound"):
        compiled(make_module(source), line_of(source, "found = value"))


@pytest.mark.parametrize(
    ("before", "around", "reason"),
    [("global total", "", "line 4 declares a name that the loop binds"), ("total = 0", "try:", "is in a try")],
)
def test_names_that_others_look_at_are_refused(before, around, reason):
    lines = [
        "def loop(values):",
        f"    {before}",
        f"    {around or 'if True:'}",
        "        for value in values:",
        "            total = value",
        "    finally:" if around else "    if True:",
        "        print(total)",
    ]
    source = "\n\n" + "\n".join(lines) + "\n"
    with pytest.raises(AnalysisRefused, match=reason):
        compiled(make_module(source), line_of(source, "total = value"))
