"""The tables of thresholds: one a room, each number with its reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from unstall.agents import thresholds as agents
from unstall.diagnose import thresholds as diagnose
from unstall.diagnose.patterns import all_patterns
from unstall.optimize import thresholds as optimize
from unstall.prove import thresholds as prove
from unstall.threshold import Range, Threshold
from unstall.trace import thresholds as trace


def test_no_number_decides_a_diagnosis_outside_its_table():
    room = Path(diagnose.__file__).parent
    decides = [
        f"{path.relative_to(room)}:{node.lineno}"
        for path in sorted(room.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, float) and 1e-9 < abs(part.value % 1) < 1
    ]
    assert not decides


@pytest.mark.parametrize("table", [agents, diagnose, optimize, prove, trace])
def test_every_number_of_a_table_has_its_reason(table):
    named = {name: value for name, value in vars(table).items() if name.isupper() and not isinstance(value, dict)}
    assert named
    assert all(isinstance(value, Threshold) and len(value.why) > 20 for value in named.values())


PATTERNS = all_patterns().values()
RANGES = [range for pattern in PATTERNS for *_, range in pattern.calibration]
REMAINS = [remedy.remains for pattern in PATTERNS for _, remedy in pattern.usual_remedies]


@pytest.mark.parametrize("given", [*RANGES, *REMAINS, *diagnose.UNCALIBRATED.values()])
def test_every_range_is_in_order_and_has_its_reason(given):
    assert isinstance(given, Range)
    assert given.low <= given.value <= given.high
    assert len(given.why) > 6


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_what_is_known_of_a_cause_is_of_one_that_the_pattern_names(pattern):
    causes = {*dict(pattern.usual_remedies), *(cause for cause, *_ in pattern.calibration)}
    assert causes <= {None, *pattern.causes}


def test_no_remedy_leaves_more_than_there_was():
    assert all(remains.high <= 1 for remains in REMAINS)


def test_a_threshold_is_a_number_to_compare_with():
    few = Threshold(3.0, "a reason that is long enough")
    assert 2 < few < 4 and 2 * few == 6.0
