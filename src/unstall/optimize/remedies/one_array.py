"""``torch.tensor`` of a list of rows or arrays, which goes element by element: by way of one NumPy array instead."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.shares import hot_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "one-array"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_REMOVED = 0.8  # of the line's time: by way of an array, a list of floats takes a tenth, a list of arrays far less
_NAME = "_tensor"
DEFINITIONS = (
    '''def _kinds(values):
    """The types of the elements of nested lists."""
    kinds = set(map(type, values))
    return set().union(*map(_kinds, values)) if kinds <= {list, tuple} else kinds
''',
    '''def _tensor(values, dtype=None):
    """The same as torch.tensor, by way of one array where that is faster."""
    if type(values) in (list, tuple) and values and (dtype is None or dtype.is_floating_point):
        kinds = _kinds(values)
        try:
            if kinds == {NUMPY.ndarray} and len({(one.dtype, one.shape) for one in values}) == 1:
                made = torch.from_numpy(NUMPY.stack(values))
                return made if dtype is None else made.to(dtype)
            if kinds in ({int}, {float}):
                made = torch.from_numpy(NUMPY.array(values))
                if made.dtype in (torch.int64, torch.float64):
                    return made.to(dtype or (torch.int64 if kinds == {int} else torch.get_default_dtype()))
        except (TypeError, ValueError, OverflowError):
            pass
    return torch.tensor(values, dtype=dtype)
''',
)


def propose(case: Case) -> list[Proposal] | Unfit:
    """The lines that the samples fell on which make a tensor of something that is no array."""
    shares: dict[Path, dict[int, float]] = {}
    for path, line, share in hot_lines(case):
        shares.setdefault(path, {})[line] = share
    reason = "no line that makes a tensor of a list takes a noticeable share"
    found = []
    for path, lines in shares.items():
        try:
            sources, changed = with_one_array(case.sources, path, set(lines))
        except SourceError as error:
            reason = str(error)
            continue
        share = min(1.0, sum(lines[line] for line in changed))
        if share < _MIN_SHARE:
            continue
        where = ", ".join(map(str, sorted(changed)))
        found.append(
            Proposal(
                NAME, f"torch.tensor of one array ({path.name}:{where})", EXACTNESS,
                predicted_without(share, _REMOVED), f"these lines take {percent(share)} of the step",
                sources=sources, key=f"{path.name}:{where}",
            )
        )  # fmt: skip
    return found or Unfit(reason)


def with_one_array(sources: Sources, path: Path, lines: set[int]) -> tuple[Sources, set[int]]:
    """The sources with the calls on these lines replaced, and which lines that changes. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    calls: dict[cst.CSTNode, set[int]] = {}
    for call in found.nodes(cst.Call):
        on = lines & set(found.lines_of(call))
        if on and rewrite.name_of(call) == "torch.tensor" and _is_plain(call):
            calls[call] = on
    if not calls:
        return sources, set()
    numpy = _numpy_name(found.module)
    if numpy is None:
        raise SourceError(f"{path.name} does not import numpy")
    clash = rewrite.clashing(found.module, (_NAME, "_kinds", "torch"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    changed = rewrite.with_calls(found.module, calls, lambda call: call.with_changes(func=cst.Name(_NAME)))
    for definition in reversed(DEFINITIONS):
        changed = rewrite.with_definition(changed, definition.replace("NUMPY", numpy))
    return sources.with_module(path, changed), set().union(*calls.values())


def _is_plain(call: cst.Call) -> bool:
    """One value, that is not a number or an array's own list, and at most a data type."""
    names = [arg.keyword.value if arg.keyword is not None else "" for arg in call.args]
    return names in ([""], ["", "dtype"]) and not any(arg.star for arg in call.args)


def _numpy_name(module: cst.Module) -> str | None:
    """What the file calls numpy."""
    for statement in module.body:
        for one in statement.body if isinstance(statement, cst.SimpleStatementLine) else []:
            for alias in one.names if isinstance(one, cst.Import) else []:
                if alias.evaluated_name == "numpy":
                    return alias.evaluated_alias or "numpy"
    return None
