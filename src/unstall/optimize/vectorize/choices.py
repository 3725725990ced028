"""Decisions in a turn, as selections: ``if near: total += a`` becomes ``total += torch.where(near, a, 0)``.

Both branches are then computed for every turn. That is the same where neither does anything else, which whoever reads
the result checks; a gradient that is not finite in the branch not taken becomes one that is not finite, and shows.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.vectorize.blocks import names_of, source


def without_decisions(body: Sequence[ast.stmt], torch: str, known: Collection[str] = ()) -> list[ast.stmt]:
    """A turn's statements, with selections for its decisions. Raises AnalysisRefused.

    torch: what the module calls torch. known: names that have a value of this turn's before.
    """
    done: list[ast.stmt] = []
    for number, part in enumerate(body):
        if not isinstance(part, ast.If):
            done.append(part)
            continue
        known = {*known, *names_of(done, ast.Store)}
        skips = [type(step) for step in part.body] == [ast.Continue] and not part.orelse
        taken, other = (([], body[number + 1 :]) if skips else (part.body, part.orelse))  # fmt: skip
        branches = [_Branch(without_decisions(branch, torch, known)) for branch in (taken, other)]
        done += _Selection(part, torch, known).of(*branches)
        if skips:
            break
    return done


class _Branch:
    """What one branch sets, and what it gives away, by what it is done to."""

    def __init__(self, steps: Sequence[ast.stmt]):
        self.sets: dict[str, ast.expr] = {}
        self.gives: dict[str, _Given] = {}
        for step in steps:
            name, given = _set(step), _given(step)
            if given is not None and given.key not in self.gives:
                self.gives[given.key] = given
            elif given is None and name and name not in self.sets and not self.gives:
                self.sets[name] = step.value  # type: ignore[attr-defined]
            else:
                raise AnalysisRefused(f"line {step.lineno}: {type(step).__name__} depends on a decision")


@dataclass(frozen=True)
class _Given:
    """A statement by which a result leaves the turn: what comes before the value, and after."""

    key: str
    value: ast.expr
    after: str = ""
    is_sum: bool = False


class _Selection:
    """One decision."""

    def __init__(self, decision: ast.If, torch: str, known: Collection[str]):
        self.line, self.torch, self.known = decision.lineno, torch, known
        self.test = _test(decision.test)

    def of(self, taken: _Branch, other: _Branch) -> Iterator[ast.stmt]:
        """The statements that stand for both branches. Raises AnalysisRefused."""
        if {*taken.sets, *other.sets} & set(names_of([ast.parse(self.test)], ast.Load)):
            raise AnalysisRefused(f"line {self.line}: a branch changes what decided")
        for name in {**taken.sets, **other.sets}:
            yield self._statement(f"{name} = ", self._set(name, taken), self._set(name, other))
        for key, given in {**taken.gives, **other.gives}.items():
            value, other_value = (self._value(branch.gives.get(key), given) for branch in (taken, other))
            yield self._statement(key, value, other_value, given.after)

    def _set(self, name: str, branch: _Branch) -> str:
        """The value of a name after a branch; nothing where nobody may read it."""
        if name in branch.sets:
            return source(branch.sets[name])
        return name if name in self.known else ""

    def _value(self, given: _Given | None, like: _Given) -> str:
        if given is None and not like.is_sum:
            raise AnalysisRefused(f"line {self.line}: whether there is a result depends on a decision")
        return source(given.value) if given is not None else "0"

    def _statement(self, before: str, taken: str, other: str, after: str = "") -> ast.stmt:
        value = f"{self.torch}.where({self.test}, {taken}, {other})" if taken and other else taken or other
        (made,) = ast.parse(before + value + after).body
        for node in ast.walk(made):
            node.lineno = self.line  # type: ignore[attr-defined]
        return made


def _test(node: ast.expr) -> str:
    """What decides, as one tensor. Raises AnalysisRefused."""
    if isinstance(node, ast.BoolOp):
        sign = " & " if isinstance(node.op, ast.And) else " | "
        return sign.join(f"({_test(value)})" for value in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"~({_test(node.operand)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return source(node)
    raise AnalysisRefused(f"line {node.lineno}: {source(node)} is not known to be a comparison")


def _set(step: ast.stmt) -> str:
    """The one name that an assignment sets."""
    is_one = isinstance(step, ast.Assign) and len(step.targets) == 1 and isinstance(step.targets[0], ast.Name)
    return step.targets[0].id if is_one else ""  # type: ignore[attr-defined]


def _given(step: ast.stmt) -> _Given | None:
    """``out[i] = x``, ``results.append(x)``, ``total += x`` and ``total = total + x``."""
    if isinstance(step, ast.AugAssign) and isinstance(step.op, (ast.Add, ast.Sub)):
        return _Given(f"{source(step.target)} {'+' if isinstance(step.op, ast.Add) else '-'}= ", step.value, "", True)
    if isinstance(step, ast.Expr) and isinstance(step.value, ast.Call) and len(step.value.args) == 1:
        return _Given(f"{source(step.value.func)}(", step.value.args[0], ")")
    if not (isinstance(step, ast.Assign) and len(step.targets) == 1):
        return None
    target, value = source(step.targets[0]), step.value
    if isinstance(step.targets[0], ast.Subscript):
        return _Given(f"{target} = ", value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)) and source(value.left) == target:
        sign = "+" if isinstance(value.op, ast.Add) else "-"
        return _Given(f"{target} = {target} {sign} ", value.right, "", True)
    return None
