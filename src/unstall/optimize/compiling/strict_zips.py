"""``zip(..., strict=True)``, which the compiler does not know: lengths are compared once the loop over it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import libcst as cst

from unstall.optimize.source.edit import is_true, keyword, statement
from unstall.optimize.source.module import SourceModule, dotted

NewName = Callable[[str], str]


def strict_argument(module: SourceModule, call: cst.CSTNode | None) -> cst.Arg | None:
    """The argument that says whether all that is zipped must be of one length."""
    if not isinstance(call, cst.Call) or module.name(call) != "builtins.zip":
        return None
    said = keyword(call, "strict")
    zipped = [arg for arg in call.args if arg is not said]
    is_plain = len(zipped) > 1 and all(arg.keyword is None and not arg.star for arg in zipped)
    return said if is_plain and said is not None and dotted(said.value) in ("True", "False") else None


def zipped_strictly(module: SourceModule, loop: cst.For) -> cst.Call | None:
    """The strict zip that a loop goes over."""
    zipped = _zipped(loop)
    said = strict_argument(module, zipped)
    return zipped if is_true(said) else None


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


def _as_zip_raises(lengths: Sequence[str]) -> list[str]:
    """Statements that raise what zip raises: it takes an item of each in turn until the first that has no more."""
    lines = []
    first, shortest = lengths[0], f"min({', '.join(lengths)})"
    for place, length in enumerate(lengths[1:], 2):
        before = "argument 1" if place == 2 else f"arguments 1-{place - 1}"
        for more, less, is_what in ((length, first, "longer"), (first, length, "shorter")):
            message = f"zip() argument {place} is {is_what} than {before}"
            lines.append(f'if {more} > {less} and {less} == {shortest}:\n    raise ValueError("{message}")\n')
    return lines
