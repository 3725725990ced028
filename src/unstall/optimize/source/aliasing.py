"""Whether a program may change a value that is given to it: a reading of all that it does with the value.

It follows names, items, views and the functions that return them, within one file. What it cannot follow counts as a
change. It is checked by running the program: what is shared is compared with what would be made anew.
"""

from __future__ import annotations

import libcst as cst
from libcst.metadata import ComprehensionScope, ExpressionContext, FunctionScope

from unstall.optimize.source.effects import Effect, changes_argument, effect_of, named
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.purity import method_of

_COPYING_METHODS = named({"": "astype clone tolist mean sum max min std var any all item argmax argmin nonzero keys "
                              "startswith endswith lower upper encode decode strip split join format"})  # fmt: skip
_COPYING_FUNCTIONS = named({
    "torch": "tensor stack cat", "numpy": "array stack concatenate", "copy": "deepcopy", "json": "dumps",
    "builtins": "int float str bool len sum hash repr isinstance range", "os.path": "join",
})  # fmt: skip
"""What they give shares nothing with what they are given that could be changed."""
_VIEWING = named({"builtins": "list tuple enumerate zip reversed sorted dict min max iter next"})
_COPYING_OPERATORS = (cst.Subtract, cst.Divide, cst.FloorDivide, cst.Power, cst.Modulo, cst.MatrixMultiply)
_LOCAL_SCOPES = (FunctionScope, ComprehensionScope)
_SAFE_PLACES = (
    cst.Comparison, cst.ComparisonTarget, cst.If, cst.While, cst.Assert, cst.Expr, cst.FormattedStringExpression,
    cst.Index, cst.Slice, cst.CompIf, cst.UnaryOperation,
)  # fmt: skip
_TRANSPARENT = (
    cst.Tuple, cst.List, cst.Dict, cst.Element, cst.DictElement, cst.IfExp, cst.BooleanOperation, cst.ListComp,
    cst.GeneratorExp, cst.DictComp, cst.BinaryOperation,
)  # fmt: skip


def refuse_changes(module: SourceModule, value: cst.CSTNode, *, samples_are_collated: bool) -> None:
    """Raise AnalysisRefused unless the program only reads a value.

    ``samples_are_collated``: what ``__getitem__`` returns goes to torch's own collate, which copies it.
    """
    _Uses(module, samples_are_collated).follow(value)


class _Uses:
    """Follows one value through a module."""

    def __init__(self, module: SourceModule, samples_are_collated: bool):
        self.module, self.samples_are_collated = module, samples_are_collated
        self.followed: set[cst.CSTNode] = set()

    def follow(self, node: cst.CSTNode) -> None:
        """Look at the place in which a value, or a part of it, stands."""
        above = self.module.parent(node)
        if node in self.followed:
            return
        self.followed.add(node)
        if isinstance(above, cst.Subscript) and above.value is node:
            self._part(above)
        elif isinstance(above, cst.Attribute):
            self._attribute(above)
        elif isinstance(above, cst.Arg):
            self._argument(above)
        elif isinstance(above, cst.Assign):
            for target in above.targets:
                self._target(target.target)
        elif isinstance(above, (cst.For, cst.CompFor)) and above.iter is node:
            self._target(above.target)
        elif isinstance(above, cst.Return):
            self._returned(above)
        elif isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _COPYING_OPERATORS):
            return
        elif isinstance(above, _TRANSPARENT):
            self.follow(above)
        elif not isinstance(above, _SAFE_PLACES):
            self._refuse(node, "does more than read what the file holds")

    def _part(self, node: cst.Subscript | cst.Attribute) -> None:
        if self.module.context(node) in (ExpressionContext.STORE, ExpressionContext.DEL):
            self._refuse(node, "changes what the file holds")
        self.follow(node)

    def _attribute(self, node: cst.Attribute) -> None:
        call, name = self.module.parent(node), node.attr.value
        if not (isinstance(call, cst.Call) and call.func is node):
            self._part(node)
            return
        in_place = any(arg.keyword is not None and arg.keyword.value in ("inplace", "out", "copy") for arg in call.args)
        if in_place or _changes(f".{name}"):
            self._refuse(node, "changes what the file holds")
        if name not in _COPYING_METHODS:
            self.follow(call)

    def _argument(self, arg: cst.Arg) -> None:
        call = self.module.parent(arg)
        if not isinstance(call, cst.Call):
            self._refuse(arg, "does more than read what the file holds")
            return
        name = self.module.name(call)
        keywords = {other.keyword.value for other in call.args if other.keyword is not None}
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("append", "extend"):
            if not isinstance(call.func.value, cst.Name):
                self._refuse(arg, "keeps what the file holds")
            self._target(call.func.value)
        elif name in _COPYING_FUNCTIONS and not keywords & {"copy", "out"}:
            return
        elif not keywords & {"out", "inplace"} and (
            name in _VIEWING
            or (name.startswith(("numpy.", "torch.")) and effect_of(name) == Effect.READS and not _changes(name))
        ):
            self.follow(call)
        else:
            self._refuse(arg, f"gives what the file holds to {dotted(call.func) or 'a function'}, which may change it")

    def _target(self, target: cst.CSTNode) -> None:
        """What a value is bound to."""
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._target(element.value)
            return
        if not isinstance(target, cst.Name) or not isinstance(self.module.scope(target), _LOCAL_SCOPES):
            self._refuse(target, "keeps what the file holds")
            return
        for binding in self.module.bindings(target):
            for access in getattr(binding, "references", ()):
                self.follow(access.node)
        scope = self.module.scope(target)
        for change in self.module.all(cst.AugAssign):
            changed = change.target
            if isinstance(changed, cst.Name) and changed.value == target.value and self.module.scope(changed) is scope:
                self._refuse(change, "changes what the file holds")

    def _returned(self, node: cst.Return) -> None:
        function = self.module.enclosing(node, cst.FunctionDef, cst.Lambda)
        if not isinstance(function, cst.FunctionDef) or function.decorators:
            self._refuse(node, "returns what the file holds to what is not seen")
            return
        name = function.name.value
        if name == "__getitem__" and self.samples_are_collated:
            return
        for call in self._calls(function):
            self.follow(call)

    def _calls(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a function, which is used otherwise nowhere in the module."""
        cls = self.module.enclosing(function, cst.ClassDef, cst.FunctionDef)
        name, calls = function.name.value, []
        if isinstance(cls, cst.ClassDef) and method_of(cls, name) is function:
            uses: list[cst.CSTNode] = [node for node in self.module.all(cst.Attribute) if node.attr.value == name]
        else:
            uses = [
                access.node for binding in self.module.scope(function)[name]
                for access in getattr(binding, "references", ())
            ]  # fmt: skip
        for use in uses:
            call = self.module.parent(use)
            if not isinstance(call, cst.Call) or call.func is not use:
                self._refuse(use, f"uses {name} other than by a call")
            else:
                calls.append(call)
        if not calls or name.startswith("__"):
            self._refuse(function, "returns what the file holds to what is not seen")
        return calls

    def _refuse(self, node: cst.CSTNode, reason: str) -> None:
        raise AnalysisRefused(f"line {self.module.first_line(node)} {reason}")


def _changes(name: str) -> bool:
    """Whether a function or method changes what it is given, or whose it is."""
    return changes_argument(name) or bool(effect_of(f".{name.rpartition('.')[2]}") & Effect.MUTATES)
