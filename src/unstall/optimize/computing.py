"""Whether a function or an expression only computes: it changes nothing, and gives the same when it is asked again.

A reading of the names that it calls, to be checked by running the program.
"""

from __future__ import annotations

import ast

from unstall.optimize.outer_names import changed_in_place, changing
from unstall.optimize.purity import Purity, attributes_read
from unstall.optimize.purity import names as names_of

_VALUES = {"Path", "PurePath", "Fraction", "Decimal"}
"""Classes whose objects do not change."""


def impurity(text: str, line: int) -> str | None:
    """Why the function around a line may not be remembered; None when it may, as far as the source tells."""
    tree = ast.parse(text)
    function = function_around(tree, line)
    if function is None:
        return "it is in no function"
    cls = next((one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and function in one.body), None)
    arguments = function.args
    if function.decorator_list or arguments.vararg or arguments.kwarg or function.name.startswith("__"):
        return "it is decorated, special, or takes any number of arguments"
    if any(
        isinstance(base, (ast.Name, ast.Attribute)) and "Module" in ast.unparse(base)
        for base in (cls.bases if cls else [])
    ):
        return "it belongs to a model"
    purity = Purity(tree, cls or ast.ClassDef(name="", bases=[], keywords=[], body=[], decorator_list=[]))
    names = {argument.arg for argument in arguments.args}
    if not all(purity.is_steady(statement, names) for statement in function.body) or purity.written:
        return purity.reason or "it sets attributes"
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function)):
        return "it returns nothing"
    given = _object_among(function, names - {"self"})
    if given is not None:
        return f"{given} is more than a plain value"
    made = _object_made(function)
    if made is not None:
        return f"it makes a {made}, which may change"
    fresh = set(names_of([function], ast.Store))
    for node in ast.walk(function):
        changed = changed_in_place(node)
        if changed is not None and not (isinstance(changed, ast.Name) and changed.id in fresh):
            return f"it changes {ast.unparse(changed)}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "next"):
            return f"it calls {ast.unparse(node.func)}"
    outer = changing(tree, function)
    if outer is not None:
        return f"it reads {outer}, which may be something else another time"
    if cls is not None and attributes_read(function.body) & purity.changing_attributes():
        return "it reads what other methods change"
    return None


def _object_among(function: ast.FunctionDef, arguments: set[str]) -> str | None:
    """An argument that has attributes other than those of strings: an object, whose content may change."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id in arguments and not hasattr(str, node.attr):
            return node.value.id
    return None


def _object_made(function: ast.FunctionDef) -> str | None:
    """A class that is called, but to raise an exception: an object each caller may want of its own."""
    raised = {id(node.exc) for node in ast.walk(function) if isinstance(node, ast.Raise)}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and id(node) not in raised:
            name = ast.unparse(node.func).rpartition(".")[2]
            if name[:1].isupper() and not name.isupper() and name not in _VALUES:
                return name
    return None


def function_around(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The innermost function around a line."""
    holding = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(holding, key=lambda node: node.lineno, default=None)
