"""``any([...])`` and ``all([...])`` compute every element before they look at the first; without the list they stop."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.computing import NotSteady, check_calls, function_around
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "stop-early"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_REMOVED = 0.5  # of the line's time, assumed: the answer is found half-way; the trial tells


def propose(case: Case) -> list[Proposal] | Unfit:
    """The lines that the samples fell on with a list of which only the first true or false element matters."""
    found: list[Proposal] = []
    reason = "no list is made only to look for a true or false element in it"
    for path, line, share in hot_lines(case):
        if share < _MIN_SHARE:
            continue
        try:
            sources = with_generators(case.sources, path, line)
        except NotSteady as error:
            reason = f"{path.name}:{line}: {error}"
            continue
        except SourceError:
            continue
        found.append(
            Proposal(
                NAME, f"no list, but one element after the other ({path.name}:{line})", EXACTNESS,
                predicted_without(share, _REMOVED), f"the line takes {percent(share)} of the step", sources=sources,
                key=f"{path.name}:{line}",
            )
        )  # fmt: skip
    return found or Unfit(reason)


def with_generators(sources: Sources, path: Path, line: int) -> Sources:
    """The sources with the lists on a line taken one element after the other. Raises NotSteady and SourceError."""
    text = sources.text(path)
    tree = ast.parse(text)
    scope = function_around(tree, line) or tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _looks_for_one(node) and node.lineno <= line <= (node.end_lineno or 0):
            check_calls(text, tree, scope, node.args[0])
    found = rewrite.Found(sources.parse(path))
    calls = [call for call in found.nodes(cst.Call) if _is_such(call) and line in found.lines_of(call)]
    if not calls:
        raise SourceError("no list is made only to look for a true or false element in it")
    clash = rewrite.clashing(found.module, ("any", "all"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    return sources.with_module(path, rewrite.with_calls(found.module, calls, _without_list))


def _looks_for_one(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Name) and call.func.id in ("any", "all") and not call.keywords
        and len(call.args) == 1 and isinstance(call.args[0], ast.ListComp)
    )  # fmt: skip


def _is_such(call: cst.Call) -> bool:
    return rewrite.name_of(call) in ("any", "all") and len(call.args) == 1 and _list_of(call) is not None


def _list_of(call: cst.Call) -> cst.ListComp | None:
    value = call.args[0].value
    return value if isinstance(value, cst.ListComp) and not call.args[0].star else None


def _without_list(call: cst.Call) -> cst.Call:
    values = _list_of(call)
    if values is None:
        return call
    each = cst.GeneratorExp(elt=values.elt, for_in=values.for_in, lpar=[], rpar=[])
    return call.with_changes(args=[call.args[0].with_changes(value=each, comma=cst.MaybeSentinel.DEFAULT)])
