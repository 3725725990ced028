"""Arrays and tensors that are joined to anew each time (``x = torch.cat([x, new])``), and the same in spare room.

Joining copies all that is there, so n times cost as much as n² rows. In a buffer of twice the length each row is copied
a few times in all (amortized growth, as Python's own lists have it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from unstall.optimize.source.bindings import may_change_in_place
from unstall.optimize.source.edit import edited, put
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, is_reference
from unstall.optimize.source.toplevel import with_runtime

_OF_TORCH = ("cat", "concat", "concatenate")
_OF_NUMPY = ("append", "concatenate", "vstack", "hstack")
_ALONG = ("append", "concatenate")
"""Those of NumPy that may name an axis."""


@dataclass(frozen=True)
class Join:
    """A statement that binds something to itself with more behind it."""

    function: cst.FunctionDef | None
    """The function that it is in; None at the top level."""
    call: cst.Call
    grown: cst.BaseExpression
    """What is joined to: ``self.losses``."""
    added: cst.BaseExpression
    way: str
    """What takes its place: a function of a module of :mod:`unstall.optimize.runtime`."""

    @property
    def runtime(self) -> str:
        """That module."""
        return "joined_tensors" if self.way.startswith("_JoinedTensors") else "joined_arrays"


def joins(module: SourceModule) -> Iterator[Join]:
    """Those in a file."""
    for node in module.all(cst.Assign):
        if isinstance(node.value, cst.Call) and len(node.targets) == 1:
            join = _join(module, node.value)
            if join is not None and module.code(join.grown) == module.code(node.targets[0].target):
                yield join


def refuse_changes_in_place(module: SourceModule, join: Join) -> None:
    """Raise AnalysisRefused where the file changes what grows in place: one that was joined to would change with it."""
    spelled = module.code(join.grown)
    last = join.grown.attr.value if isinstance(join.grown, cst.Attribute) else ""
    for node in module.all(cst.Name, cst.Attribute, cst.Subscript):
        is_same = node.attr.value == last if isinstance(node, cst.Attribute) else module.code(node) == spelled
        if not is_same:
            continue
        if may_change_in_place(module, node):
            raise AnalysisRefused(f"line {module.first_line(node)} changes {spelled} in place")


def in_spare_room(module: SourceModule, found_joins: list[Join]) -> cst.Module:
    """The tree in which these grow in buffers. Raises NameTaken where the file's names are in the way."""
    tree = edited(module.tree, {join.call: put(_call(module, join)) for join in found_joins})
    for runtime in sorted({join.runtime for join in found_joins}):
        tree = with_runtime(tree, runtime)
    return tree


def _call(module: SourceModule, join: Join) -> cst.BaseExpression:
    return cst.parse_expression(
        f"{join.way}({module.code(join.grown)}, {module.code(join.added)})", config=module.tree.config_for_parsing
    )


def _join(module: SourceModule, call: cst.Call) -> Join | None:
    """What a call joins, if it is two things by their first axis."""
    library, _, name = module.name(call).rpartition(".")
    of_torch = library == "torch" and name in _OF_TORCH
    if not of_torch and not (library == "numpy" and name in _OF_NUMPY):
        return None
    arguments = list(call.args)
    axis = _taken(arguments, ("dim", "axis"), after=2 if name == "append" else 1)
    if any(argument.keyword is not None or argument.star for argument in arguments):
        return None
    if axis is not None and (module.code(axis) != "0" or not (of_torch or name in _ALONG)):
        return None
    parts = [argument.value for argument in arguments]
    if name == "append":
        name = name if axis is None else "concatenate"
    elif len(parts) == 1 and isinstance(parts[0], (cst.List, cst.Tuple)):
        if any(isinstance(element, cst.StarredElement) for element in parts[0].elements):
            return None
        parts = [element.value for element in parts[0].elements]
    else:
        return None
    if len(parts) != 2 or not is_reference(parts[0], cst.SimpleString, cst.Integer):
        return None
    return Join(
        module.enclosing(call, cst.FunctionDef),
        call,
        parts[0],
        parts[1],
        "_JoinedTensors.join" if of_torch else f"_JoinedArrays.{name}",
    )


def _taken(arguments: list[cst.Arg], names: tuple[str, ...], *, after: int) -> cst.BaseExpression | None:
    """The axis among the arguments of a call, which is taken out of them."""
    for place, argument in enumerate(arguments):
        named = argument.keyword is not None and argument.keyword.value in names
        if named or (argument.keyword is None and not argument.star and place == after):
            return arguments.pop(place).value
    return None
