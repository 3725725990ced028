"""JPEGs decoded at reduced size before they are shrunk: Pillow's draft mode skips most of the work.

The pixels differ a little from those of a full decode, so the training is another: it is told, and tried when allowed.
"""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.shares import hot_lines, of_loading
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "draft-decode"
AREA: Area = "memory"
EXACTNESS: Exactness = "training-changing"

_MIN_SHARE = 0.05
_REMOVED = 0.6  # of loading: a photograph decoded at a quarter of its width takes a third, and is resized sooner
_ROOM = 2  # decoded at no less than this times the size wanted, so that the resize still has something to average
_SHRINKING = ("resize", "thumbnail")


def propose(case: Case) -> list[Proposal] | Unfit:
    """The functions that the samples fell in which open an image and shrink it to a size that is written there."""
    share = of_loading(case)
    if share < _MIN_SHARE:
        return Unfit(f"loading takes {percent(share)} of the step")
    lines: dict[Path, set[int]] = {}
    for path, line, _ in hot_lines(case):
        lines.setdefault(path, set()).add(line)
    reason = "no function that takes time opens an image and shrinks it to a size that is known"
    found = []
    for path, hot in lines.items():
        try:
            sources, changed = with_draft(case.sources, path, hot)
        except SourceError as error:
            reason = str(error)
            continue
        if changed:
            where = ", ".join(map(str, changed))
            found.append(
                Proposal(
                    NAME, f"JPEGs decoded at reduced size ({path.name}:{where})", EXACTNESS,
                    predicted_without(share, _REMOVED),
                    f"loading takes {percent(share)} of the step; pixels differ a little from those of a full decode",
                    sources=sources, key=f"{path.name}:{where}",
                )
            )  # fmt: skip
    return found or Unfit(reason)


def with_draft(sources: Sources, path: Path, hot: set[int]) -> tuple[Sources, list[int]]:
    """The sources with a ``draft`` after each ``Image.open`` of the functions on these lines, and where."""
    found = rewrite.Found(sources.parse(path))
    changed = found.module
    places = []
    opened = [call for call in found.nodes(cst.Call) if rewrite.name_of(call) in ("Image.open", "PIL.Image.open")]
    edits: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
    for call in opened:
        size = _size(found, call, found.around(call, cst.FunctionDef), hot)
        statement = found.statement(call)
        in_loop = found.around(call, cst.CompFor, cst.GeneratorExp, cst.ListComp, cst.Lambda) is not None
        if size is None or in_loop or not isinstance(statement, cst.SimpleStatementLine) or statement in edits:
            continue
        edits[statement] = _three(found.module, statement, call, size)
        places.append(found.place(call).start.line)
    if edits:
        visited = found.module.visit(_Instead(edits))
        assert isinstance(visited, cst.Module)
        changed = visited
    return sources.with_module(path, changed) if edits else sources, places


def _three(
    module: cst.Module, statement: cst.SimpleStatementLine, call: cst.Call, size: tuple[str, str]
) -> list[cst.BaseStatement]:
    """Open; ask for a draft, before anything makes the image load; then what the statement did."""
    first = statement.body[0]
    plain = isinstance(first, cst.Assign) and len(first.targets) == 1 and isinstance(first.targets[0].target, cst.Name)
    name = rewrite.code(module, first.targets[0].target) if plain else "photo"  # type: ignore[attr-defined]
    width, height = size
    lines = [
        f"{name} = {rewrite.code(module, call)}\n",
        f'{name}.draft("RGB", ({_ROOM} * {width}, {_ROOM} * {height}))\n',
    ]
    added = [cst.parse_statement(line, config=module.config_for_parsing) for line in lines]
    added[0] = added[0].with_changes(leading_lines=statement.leading_lines)
    if plain and first.value is call:  # type: ignore[attr-defined]
        return [added[0].with_changes(trailing_whitespace=statement.trailing_whitespace), added[1]]
    rest = statement.deep_replace(call, cst.Name(name))  # type: ignore[arg-type]
    assert isinstance(rest, cst.SimpleStatementLine)
    return [*added, rest.with_changes(leading_lines=())]


def _size(
    found: rewrite.Found, opened: cst.Call, function: cst.CSTNode | None, hot: set[int]
) -> tuple[str, str] | None:
    """Width and height, as source, that the function shrinks its image to; None when it is not written as a pair."""
    if not isinstance(function, cst.FunctionDef):
        return None
    place = found.place(function)
    if not any(place.start.line <= line <= place.end.line for line in hot):
        return None
    sizes = []
    for call in (one for one in rewrite.inside(function) if isinstance(one, cst.Call)):
        shrinks = isinstance(call.func, cst.Attribute) and call.func.attr.value in _SHRINKING
        if shrinks and call.args and isinstance(call.args[0].value, cst.Tuple) and not call.args[0].star:
            elements = call.args[0].value.elements
            if len(elements) == 2 and all(_is_fixed(one.value) for one in elements):
                sizes.append(
                    (rewrite.code(found.module, elements[0].value), rewrite.code(found.module, elements[1].value))
                )
    several = sum(rewrite.name_of(one) == rewrite.name_of(opened) for one in rewrite.inside(function)
                  if isinstance(one, cst.Call)) > 1  # fmt: skip
    return sizes[0] if len(sizes) == 1 and not several else None


def _is_fixed(value: cst.BaseExpression) -> bool:
    """A number, or what does not depend on the image: ``self.size``, a constant of the module."""
    if isinstance(value, cst.Integer):
        return True
    name = rewrite.dotted(value)
    return name.startswith("self.") or name.isupper()


class _Instead(cst.CSTTransformer):
    """Puts statements in the place of some."""

    def __init__(self, edits: dict[cst.CSTNode, list[cst.BaseStatement]]) -> None:
        super().__init__()
        self.edits = edits

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        instead = self.edits.get(original_node)
        return updated_node if instead is None else cst.FlattenSentinel(instead)
