"""Decisions in a turn, as selections: ``if near: total += a`` becomes ``total += torch.where(near, a, 0)``.

Both branches are then computed for every turn. That is the same where neither does anything else, which whoever reads
the result checks; a gradient that is not finite in the branch not taken becomes one that is not finite, and shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from unstall.optimize.source.bindings import names_of
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule
from unstall.optimize.vectorize.sinks import Sink, sink_of
from unstall.optimize.vectorize.syntax import Step, branches, names_in, single_target, source


def without_decisions(
    module: SourceModule, body: Sequence[Step], torch: str, known: Collection[str] = ()
) -> list[Step]:
    """A turn's statements, with selections for its decisions. Raises AnalysisRefused.

    torch: what the module calls torch. known: names that have a value of this turn's before.
    """
    done: list[Step] = []
    for number, step in enumerate(body):
        if not isinstance(step, cst.If):
            done.append(step)
            continue
        known = {*known, *names_set(done)}
        taken, other = branches(step)
        skips = [type(inner) for inner in taken] == [cst.Continue] and not other
        if skips:
            taken, other = [], list(body[number + 1 :])
        both = [_parts(module, without_decisions(module, branch, torch, known)) for branch in (taken, other)]
        try:
            done += _selected(step.test, torch, known, *both)
        except AnalysisRefused as reason:
            raise AnalysisRefused(f"line {module.first_line(step)}: {reason}") from reason
        if skips:
            break
    return done


def names_set(body: Sequence[Step]) -> set[str]:
    """The names that assignments set."""
    targets = [target.target for step in body if isinstance(step, cst.Assign) for target in step.targets]
    targets += [step.target for step in body if isinstance(step, cst.AugAssign)]
    return set().union(*map(names_of, targets))


def _parts(module: SourceModule, branch: Sequence[Step]) -> dict[str, Sink]:
    """What a branch sets, and then gives away, by what it is done to. Raises AnalysisRefused."""
    parts: dict[str, Sink] = {}
    for step in branch:
        part, target = sink_of(step), single_target(step)
        if part is None and isinstance(target, cst.Name) and all(earlier.kind == "set" for earlier in parts.values()):
            part = Sink(target.value, "set", step.value, step)  # type: ignore[union-attr]
        if part is None or part.key in parts:
            raise AnalysisRefused(f"line {module.first_line(step)}: {type(step).__name__} depends on a decision")
        parts[part.key] = part
    return parts


def _selected(
    test: cst.BaseExpression, torch: str, known: Collection[str], taken: dict[str, Sink], other: dict[str, Sink]
) -> Iterator[Step]:
    """The statements that stand for both branches of a decision. Raises AnalysisRefused."""
    decides = _decides(test)
    parts = sorted({**taken, **other}.values(), key=lambda part: part.kind != "set")
    if any(part.kind == "set" and part.name in names_in(decides) for part in parts):
        raise AnalysisRefused("a branch changes what decided")
    for part in parts:
        values = [_value(branch.get(part.key), part, known) for branch in (taken, other)]
        arguments = [cst.Arg(value) for value in (decides, *values) if value is not None]
        where = cst.Call(cst.parse_expression(f"{torch}.where"), arguments)
        yield part.step if None in values else part.step.deep_replace(part.value, where)


def _value(part: Sink | None, like: Sink, known: Collection[str]) -> cst.BaseExpression | None:
    """What a branch sets or gives; None where nobody may read it after the other. Raises AnalysisRefused."""
    if part is not None:
        return part.value
    if like.kind == "set":
        return cst.Name(like.name) if like.name in known else None
    if like.kind != "sum":
        raise AnalysisRefused("whether there is a result depends on a decision")
    return cst.Integer("0")


def _decides(node: cst.BaseExpression) -> cst.BaseExpression:
    """What decides, as one tensor. Raises AnalysisRefused."""
    if isinstance(node, cst.BooleanOperation):
        sign = cst.BitAnd() if isinstance(node.operator, cst.And) else cst.BitOr()
        return cst.BinaryOperation(_bracketed(_decides(node.left)), sign, _bracketed(_decides(node.right)))
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return cst.UnaryOperation(cst.BitInvert(), _bracketed(_decides(node.expression)))
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return node
    raise AnalysisRefused(f"{source(node)} is not known to be a comparison")


def _bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
