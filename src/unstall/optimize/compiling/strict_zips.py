"""``zip(..., strict=True)``, which the compiler does not know: lengths are compared once the loop over it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import libcst as cst

from unstall.optimize.source.edit import keyword, statement
from unstall.optimize.source.module import SourceModule, dotted, root

_SIZED = ("builtins.range", "builtins.list", "builtins.sorted")
NewName = Callable[[str], str]


def strict_argument(module: SourceModule, call: cst.CSTNode | None) -> cst.Arg | None:
    """The argument that says whether all that is zipped must be of one length."""
    if not isinstance(call, cst.Call) or module.name(call) != "builtins.zip":
        return None
    said = keyword(call, "strict")
    zipped = [arg for arg in call.args if arg is not said]
    is_plain = len(zipped) > 1 and all(arg.keyword is None and not arg.star for arg in zipped)
    return said if is_plain and said is not None and dotted(said.value) in ("True", "False") else None


def refused_zip(module: SourceModule, said: cst.Arg) -> str | None:
    """Why the lengths of what is zipped cannot be compared; None where they can, or need not be."""
    if dotted(said.value) == "False":
        return None
    zipped = module.parent(said)
    assert isinstance(zipped, cst.Call)
    loop = module.enclosing(zipped, cst.For)
    if loop is None or zipped_strictly(module, loop) is not zipped:
        return "zips strictly what no loop goes over"
    if any(arg is not said and not _is_sized(module, arg.value) for arg in zipped.args):
        return "zips strictly what may have no length"
    of = {root(node) for arg in zipped.args for node in module.inside(arg.value)} - {""}
    grows = any(
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and root(node.func) in of
        and node.func.attr.value == "append"
        for node in module.inside(loop.body)
    )  # fmt: skip
    return "goes over what it appends to" if grows else None


def zipped_strictly(module: SourceModule, loop: cst.For) -> cst.Call | None:
    """The strict zip that a loop goes over."""
    zipped = _zipped(loop)
    said = strict_argument(module, zipped)
    return zipped if said is not None and dotted(said.value) == "True" else None


def without_strict(zipped: cst.Call) -> cst.Call:
    """The call without the argument."""
    plain = [arg for arg in zipped.args if arg.keyword is None]
    plain[-1] = plain[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return zipped.with_changes(args=plain)


def comparing(module: SourceModule, loop: cst.For, new_name: NewName) -> Callable[[cst.For], cst.FlattenSentinel]:
    """The edit that takes the lengths before a loop over a strict zip, and compares them after it."""
    zipped = zipped_strictly(module, loop)
    assert zipped is not None
    names = [new_name("length") for arg in zipped.args if arg.keyword is None]
    return partial(_compared, module, names)


def _compared(module: SourceModule, names: Sequence[str], loop: cst.For) -> cst.FlattenSentinel:
    zipped = _zipped(loop)
    assert zipped is not None
    values = ", ".join(f"len({module.code(arg.value)})" for arg in zipped.args)
    before = statement(module.tree, f"{', '.join(names)} = {values}")
    after = cst.Else(cst.IndentedBlock([statement(module.tree, line) for line in _as_zip_raises(names)]))
    return cst.FlattenSentinel([before, loop.with_changes(orelse=after)])


def _zipped(loop: cst.For) -> cst.Call | None:
    """The call that a loop goes over, numbered or not."""
    over = loop.iter
    if isinstance(over, cst.Call) and dotted(over.func) == "enumerate" and over.args:
        over = over.args[0].value
    return over if isinstance(over, cst.Call) else None


def _is_sized(module: SourceModule, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        return module.name(value) in _SIZED or (isinstance(value.func, cst.Attribute) and not value.args)
    return isinstance(value, (cst.Name, cst.Attribute, cst.Subscript, cst.List, cst.Tuple, cst.ListComp))


def _as_zip_raises(lengths: Sequence[str]) -> list[str]:
    """Statements that raise what zip raises: it takes an item of each in turn until the first that has no more."""
    lines = []
    first, shortest = lengths[0], f"min({', '.join(lengths)})"
    for place, length in enumerate(lengths[1:], 2):
        before = "argument 1" if place == 2 else f"arguments 1-{place - 1}"
        for condition, is_what in ((f"{length} > {first}", "longer"), (f"{first} > {length}", "shorter")):
            shorter = condition.rpartition(" ")[2]
            message = f"zip() argument {place} is {is_what} than {before}"
            lines.append(f'if {condition} and {shorter} == {shortest}:\n    raise ValueError("{message}")\n')
    return lines
