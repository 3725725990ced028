"""The tables of thresholds: one a room, each number with its reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import unstall
from unstall.agents import thresholds as agents
from unstall.diagnose import thresholds as diagnose
from unstall.diagnose.patterns import all_patterns
from unstall.prove import thresholds as prove
from unstall.threshold import Range, Threshold
from unstall.trace import thresholds as trace

ROOMS = Path(unstall.__file__).parent


@pytest.mark.parametrize("room", ["benchmark", "diagnose", "optimize", "repeat", "sandbox"])
def test_no_number_decides_outside_its_table(room):
    decides = []
    for path in sorted((ROOMS / room).rglob("*.py")):
        tree = ast.parse(path.read_text())
        named = {
            target.id for node in tree.body if path.name != "thresholds.py" and isinstance(node, ast.Assign)
            for target in node.targets if isinstance(target, ast.Name) and _is_fraction(node.value)
        }  # fmt: skip
        decides += [
            f"{path.relative_to(ROOMS)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare)
            for part in ast.walk(node)
            if _is_fraction(part) or (isinstance(part, ast.Name) and part.id in named)
        ]
    assert not decides


def _is_fraction(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 1e-9 < abs(node.value % 1) < 1


@pytest.mark.parametrize("table", [agents, diagnose, prove, trace])
def test_every_number_of_a_table_has_its_reason(table):
    named = {name: value for name, value in vars(table).items() if name.isupper() and not isinstance(value, dict)}
    assert named
    assert all(isinstance(value, Threshold) and len(value.why) > 20 for value in named.values())


@pytest.mark.parametrize("room", ["benchmark", "data", "model", "optimize", "repeat", "report", "sandbox", "simplify"])
def test_every_number_of_a_typed_table_has_its_unit_and_its_reason(room):
    """``NAME: Annotated[Share, "why it is that"] = 0.5``; what is another room's number has its reason there."""
    body = ast.parse((ROOMS / room / "thresholds.py").read_text()).body
    assert not [node.lineno for node in body if isinstance(node, ast.Assign) and _has_number(node)]
    typed = [node.annotation for node in body if isinstance(node, ast.AnnAssign)]
    assert typed
    for annotation in typed:
        assert isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple)
        unit, *words = annotation.slice.elts
        is_plain = ast.unparse(unit).partition("[")[0] in ("int", "float", "tuple")
        assert len(words) == (2 if is_plain else 1)
        assert len(ast.literal_eval(words[-1])) > 6


def _has_number(node: ast.Assign) -> bool:
    return any(isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in ast.walk(node.value))


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
