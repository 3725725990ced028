"""The array forms of pure functions of numbers that a loop calls: the user's own, or pure Python of the library."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, parsed
from unstall.optimize.vectorize.blocks import Block, chosen, names_of
from unstall.optimize.vectorize.expressions import Expressions

_MAX_DEPTH = 3


class Functions:
    """Finds the functions that a module's loop calls, and converts them on demand."""

    def __init__(self, module: SourceModule, numpy: str, *, tree: ast.Module | None = None, depth: int = 0):
        self.module, self.numpy, self.depth = module, numpy, depth
        self.tree = tree or ast.parse(module.text)
        self.array_forms: dict[str, tuple[str, str]] = {}
        """Qualified name → (name of the array form, its source)."""

    def __call__(self, name: str) -> str | None:
        """The name of the array form of a function; None when there is no such function to be found."""
        if name not in self.array_forms:
            definition = self._find(name)
            if definition is None:
                return None
            function, functions = definition
            array_name = f"_{name.rpartition('.')[2]}_array"
            if functions is not self:
                functions.array_forms = self.array_forms
            self.array_forms[name] = (array_name, converted(function, array_name, functions, name))
        return self.array_forms[name][0]

    def sources(self) -> list[str]:
        """The source of every function that was made, callees first."""
        return [source for _, source in self.array_forms.values()]

    def _find(self, name: str) -> tuple[ast.FunctionDef, Functions] | None:
        """A function by its qualified name, and what its own calls are looked up in."""
        module, _, last = name.rpartition(".")
        if self.depth >= _MAX_DEPTH:
            return None
        return self._in_library(module, last) if module else self._own(name)

    def _own(self, name: str) -> tuple[ast.FunctionDef, Functions] | None:
        for statement in self.tree.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                return statement, self
        return None

    def _in_library(self, module: str, name: str) -> tuple[ast.FunctionDef, Functions] | None:
        """A function of the standard library, read and not imported."""
        if "." in module or module not in sys.stdlib_module_names:
            return None
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            return None
        library = parsed(Path(spec.origin).read_bytes())
        inner = Functions(
            library, self.numpy, tree=_with_constants_inlined(ast.parse(library.text)), depth=self.depth + 1
        )
        return inner._own(name)


def converted(function: ast.FunctionDef, name: str, functions: Functions, shown: str) -> str:
    """The source of the array form of a function of numbers. Raises AnalysisRefused."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or function.decorator_list:
        raise AnalysisRefused(f"{shown} takes more than plain numbers")
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    parameters = {argument_name: argument_name for argument_name in names}
    resolve = functions.module.resolve
    expressions = Expressions(functions.numpy, parameters, lambda node: None, functions, resolve=resolve)
    block = Block(expressions, taken=set(names))
    block.run(function.body)
    _only_locals(function, set(names))
    lines = [f'"""``{shown}`` for arrays."""', *block.lines, *chosen(functions.numpy, block.returns)]
    return f"def {name}({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in lines)


def _only_locals(function: ast.FunctionDef, arguments: set[str]) -> None:
    """A function that reads a variable of its module cannot be moved."""
    assigned = set(names_of([function], ast.Store))
    called = {
        node.func.id for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    modules = {
        node.func.value.id
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }
    read_names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    outside = read_names - assigned - arguments - called - modules
    if outside:
        raise AnalysisRefused(f"{function.name} reads {', '.join(sorted(outside))} of its module")


def _with_constants_inlined(tree: ast.Module) -> ast.Module:
    """The module with its top-level constants (``ONE_THIRD = 1.0 / 3.0``) written where they are read."""
    constants: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and _is_number(statement.value):
                constants[target.id] = statement.value
    return _Inline(constants).visit(tree)


def _is_number(node: ast.expr) -> bool:
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(isinstance(inner, kinds) for inner in ast.walk(node)) and not any(
        isinstance(inner, ast.Constant) and not isinstance(inner.value, (int, float)) for inner in ast.walk(node)
    )


class _Inline(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, ast.expr]):
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self.constants:
            return self.constants[node.id]
        return node
