"""The array forms of pure functions of numbers that a loop calls: the user's own, or pure Python of the library."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.edit import Edit, edited, put
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, parsed, walk
from unstall.optimize.source.purity import names
from unstall.optimize.vectorize.blocks import Block, chosen
from unstall.optimize.vectorize.expressions import Expressions
from unstall.optimize.vectorize.syntax import single_target, source, steps

_MAX_DEPTH = 3
_OF_NUMBERS = (cst.BinaryOperation, cst.UnaryOperation, cst.Integer, cst.Float)


class Functions:
    """Finds the functions that a module's loop calls, and converts them on demand."""

    def __init__(self, module: SourceModule, numpy: str, *, depth: int = 0):
        self.module, self.numpy, self.depth = module, numpy, depth
        self.array_forms: dict[str, tuple[str, str]] = {}
        """Qualified name → (name of the array form, its source)."""

    def __call__(self, name: str) -> str | None:
        """The name of the array form of a function; None when there is no such function to be found."""
        if name not in self.array_forms:
            module, _, last = name.rpartition(".")
            functions = self._library(module, last) if module else self
            function = functions.module.top_level(cst.FunctionDef, last) if functions is not None else None
            if functions is None or function is None or self.depth >= _MAX_DEPTH:
                return None
            array_name = f"_{last}_array"
            functions.array_forms = self.array_forms
            self.array_forms[name] = (array_name, converted(function, array_name, functions, name))
        return self.array_forms[name][0]

    def sources(self) -> list[str]:
        """The source of every function that was made, callees first."""
        return [source for _, source in self.array_forms.values()]

    def _library(self, module: str, name: str) -> Functions | None:
        """The functions of a module of the standard library that has one of this name; it is read and not imported."""
        if "." in module or module not in sys.stdlib_module_names:
            return None
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            return None
        library = parsed(Path(spec.origin).read_bytes())
        if library.top_level(cst.FunctionDef, name) is None:
            return None
        return Functions(_with_constants_inlined(library), self.numpy, depth=self.depth + 1)


def converted(function: cst.FunctionDef, name: str, functions: Functions, shown: str) -> str:
    """The source of the array form of a function of numbers. Raises AnalysisRefused."""
    params = function.params
    plain = [*params.posonly_params, *params.params]
    starred = isinstance(params.star_arg, cst.Param) or params.star_kwarg
    special = function.decorators or function.asynchronous or any(param.default for param in plain)
    if starred or params.kwonly_params or special:
        raise AnalysisRefused(f"{shown} takes more than plain numbers")
    arguments = [param.name.value for param in plain]
    parameters = {argument: argument for argument in arguments}
    expressions = Expressions(functions.module, functions.numpy, parameters, lambda node: None, functions)
    block = Block(expressions, taken=set(arguments))
    block.run(steps(function.body))
    _refuse_reading_module(functions.module, function)
    lines = [f'"""``{shown}`` for arrays."""', *block.lines, *chosen(functions.numpy, block.returns)]
    return f"def {name}({', '.join(arguments)}):\n" + "".join(f"    {line}\n" for line in lines)


def _refuse_reading_module(module: SourceModule, function: cst.FunctionDef) -> None:
    """A function that reads a variable of its module cannot be moved."""
    calls = [node for node in module.inside(function) if isinstance(node, cst.Call)]
    called = {part for call in calls for part in (call.func, getattr(call.func, "value", None))}
    own = names(module, [function], ExpressionContext.STORE)
    outside = {
        node.value
        for node in module.inside(function)
        if isinstance(node, cst.Name) and module.context(node) is ExpressionContext.LOAD and node not in called
        and node.value not in own and not module.name(node).startswith("builtins.")
    }  # fmt: skip
    if outside:
        raise AnalysisRefused(f"{function.name.value} reads {', '.join(sorted(outside))} of its module")


@lru_cache(maxsize=8)
def _with_constants_inlined(module: SourceModule) -> SourceModule:
    """The module with its top-level constants (``ONE_THIRD = 1.0 / 3.0``) written where they are read."""
    edits: dict[cst.CSTNode, Edit] = {}
    for step in steps(module.tree):
        target = single_target(step)
        if isinstance(target, cst.Name) and _is_number(step.value):
            reads = {access.node for bound in module.bindings(target) for access in bound.references}
            for read in reads:
                if module.context(read) is ExpressionContext.LOAD:
                    edits[read] = put(cst.parse_expression(f"({source(step.value)})"))
    return SourceModule(edited(module.tree, edits))


def _is_number(node: cst.BaseExpression) -> bool:
    return all(isinstance(inner, _OF_NUMBERS) for inner in walk(node) if isinstance(inner, cst.BaseExpression))
