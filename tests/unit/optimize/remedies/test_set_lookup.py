"""Values looked up in sets beside lists: the same answers as the lists give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.set_lookup import REMEDY
from unstall.optimize.rewrites.set_lookup import looked_up, lookups
from unstall.optimize.runtime.looked_up import _LookedUp
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.records.report import Hotspot

FILTER = """class Filter:
    def __init__(self, seen):
        self.seen = seen

    def is_new(self, text):
        if text in self.seen:
            return False
        self.seen.append(text)
        return True
"""

PLAIN = st.one_of(
    st.integers(0, 40), st.booleans(), st.sampled_from(["", "a", b"a", None, 1.0, 0.0, -0.0, float("nan")]),
    st.tuples(st.integers(0, 3), st.sampled_from(["x", 1.0, True])),
)  # fmt: skip


def rewritten(source, line=6):
    module = make_module(source)
    return looked_up(module, list(lookups(module, line))).code


def filtered(source, texts):
    space: dict = {}
    exec(compile(source, "filter.py", "exec"), space)
    made = space["Filter"]([])
    return [made.is_new(text) for text in texts]


@given(st.lists(PLAIN, max_size=60), st.lists(st.tuples(PLAIN, st.lists(PLAIN, max_size=3)), max_size=30))
def test_the_answers_are_those_of_the_list(more, asked):
    items = [*range(20, 90), *more]
    for value, added in asked:
        assert _LookedUp.holds(value, items) == (value in items)
        items.extend(added)


class Equal:
    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize("odd", [Equal(), [1], {"a": 1}, (1, [2])])
def test_values_that_may_be_equal_otherwise_are_looked_for_as_before(odd):
    items = [*range(100)]
    assert _LookedUp.holds(odd, items) == (odd in items)
    items.append(odd)
    for value in (5, 1000, odd):
        assert _LookedUp.holds(value, items) == (value in items)


def test_a_list_that_became_shorter_or_another_is_read_anew():
    items = [*range(100)]
    assert _LookedUp.holds(99, items)
    items.pop()
    assert not _LookedUp.holds(99, items)
    items[:] = range(200, 300)
    assert not _LookedUp.holds(5, items) and _LookedUp.holds(205, items)


def test_others_than_lists_are_asked_themselves():
    assert _LookedUp.holds(3, range(100)) and not _LookedUp.holds("b", "a" * 100) and _LookedUp.holds(1, {1})


def test_no_more_lists_are_held_than_a_few():
    for number in range(100):
        assert _LookedUp.holds(number + 1, [*range(number, number + 80)])
    assert len(_LookedUp.sets) <= 16


@pytest.mark.parametrize("asks", ["text in self.seen", "not text not in self.seen"])
def test_what_is_asked_changes_and_nothing_else(asks):
    source = FILTER.replace("text in self.seen", asks)
    changed = rewritten(source)
    assert "_LookedUp.holds(text, self.seen)" in changed
    texts = [str(number % 150) for number in range(400)]
    assert filtered(source, texts) == filtered(changed, texts)


@pytest.mark.parametrize(
    "change", ["self.seen.pop()", "self.seen[0] = text", "del self.seen[0]", "self.seen.sort()", "self.seen *= 2"]
)
def test_a_list_that_is_changed_otherwise_is_left(change):
    source = FILTER.replace("        return True", f"        {change}\n        return True")
    with pytest.raises(AnalysisRefused, match="otherwise than by adding to it"):
        rewritten(source)


def test_a_list_that_is_added_to_is_not():
    assert "_LookedUp" in rewritten(FILTER.replace("self.seen.append(text)", "self.seen += [text]"))


def proposals(tmp_path, line, share):
    path = tmp_path / "train.py"
    path.write_text(FILTER)
    spot = Hotspot(function="is_new", file=str(path), line=line, share=share, phase="other")
    return REMEDY.propose(make_context(tmp_path, report=make_report(hotspots=[spot])))


def test_it_is_proposed_for_hot_lines(tmp_path):
    (proposal,) = proposals(tmp_path, 6, 0.5)
    assert (proposal.title, proposal.key) == ("looks up in a set (train.py:6)", "train.py:6")
    for line, share in ((6, 0.001), (8, 0.5)):
        with pytest.raises(NotApplicable, match="no hot line"):
            proposals(tmp_path, line, share)
