"""A call in a loop whose result nobody reads is left out, where it takes a good part of the step."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_report

from unstall.optimize.remedies.unread_results import REMEDY
from unstall.optimize.source.errors import NotApplicable
from unstall.records.report import Hotspot

TRAIN = """def highest(scores):
    return max(scores)


def train(rows):
    for row in rows:
        best = highest(rows)
    best = highest(rows)
    return best
"""


def proposals(tmp_path, line, share, source=TRAIN):
    path = tmp_path / "train.py"
    path.write_text(source)
    spot = Hotspot(function="highest", file=str(path), line=line, share=share, phase="other")
    return REMEDY.propose(make_context(tmp_path, report=make_report(hotspots=[spot])))


@pytest.mark.parametrize("line", [2, 7])
def test_it_is_proposed_for_what_the_call_and_its_function_take(tmp_path, line):
    (proposal,) = proposals(tmp_path, line, 0.5)
    assert proposal.title == "highest is not called in each turn, as nobody reads what it gives (train.py:7)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.5 * 0.98))
    changed = proposal.sources.bytes_of(tmp_path / "train.py")
    assert b"        pass\n    best = highest(rows)" in changed


def test_functions_of_one_name_in_files_of_one_name_are_two_changes(tmp_path):
    spots = []
    for folder in ("faces", "streets"):
        path = tmp_path / folder / "train.py"
        path.parent.mkdir()
        path.write_text(TRAIN)
        spots.append(Hotspot(function="highest", file=str(path), line=2, share=0.4, phase="other"))
    proposals = REMEDY.propose(make_context(tmp_path, report=make_report(hotspots=spots)))
    assert [proposal.key for proposal in proposals] == ["faces/train.py:7", "streets/train.py:7"]


def test_a_file_that_cannot_be_parsed_leaves_the_others(tmp_path):
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "train.py").write_text(TRAIN)
    spots = [
        Hotspot(function="highest", file=str(tmp_path / name), line=2, share=0.5, phase="other")
        for name in ("broken.py", "gone.py", "train.py")
    ]
    (proposal,) = REMEDY.propose(make_context(tmp_path, report=make_report(hotspots=spots)))
    assert proposal.title.endswith("(train.py:7)")


@pytest.mark.parametrize(
    ("line", "share", "source", "reason"),
    [
        (2, 0.02, TRAIN, "highest, whose result nobody reads, takes 2 % of the step"),
        (6, 0.5, TRAIN, "takes 0 % of the step"),
        (2, 0.5, TRAIN.replace("    best = highest(rows)\n    return", "    return"), "no loop of your own"),
    ],
)
def test_what_takes_little_or_is_read_is_left(tmp_path, line, share, source, reason):
    with pytest.raises(NotApplicable, match=reason):
        proposals(tmp_path, line, share, source)
