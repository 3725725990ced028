"""Find the line of the user's source where a variable or an attribute is made to grow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from unstall.diagnose import source
from unstall.records.report import Culprit

APPENDING = frozenset(
    {"append", "extend", "appendleft", "extendleft", "insert", "add", "update", "setdefault"}
    | {"put", "put_nowait", "push", "write", "writelines"}
)
HEAPS = frozenset({"heappush", "insort", "insort_left", "insort_right"})
"""Functions that add to the container that is their first argument."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SET_UP = frozenset({"__init__", "__new__", "__post_init__", "__enter__", "setup"})

# How sure a form is to make its target grow, the surest first.
_APPEND, _ADD, _STORE, _REBIND, _REGISTER, _REPLACE = range(6)


class _Site(NamedTuple):
    """One place that makes the target grow; sites sort from the likeliest to the least likely."""

    not_per_step: bool
    elsewhere: bool
    form: int
    indirect: bool
    line: int
    function: str


def locate(path: str, file: str, function: str) -> Culprit | None:
    """The line of `file` that grows what a memory probe called `path`.

    Args:
        path: as :func:`unstall.child.retention.probe` names it: ``losses``, ``self.history``,
            ``history['loss']``, ``Trainer.seen``, ``step.memo``, ``encode.cache_info``.
        file: the source file to look in.
        function: qualified name of the function or class that holds it; ``<module>`` for a global.

    Returns:
        Of several lines one that runs in each step (in a loop, or in a function that is no set-up),
        in the function or class itself, and an append before an assignment. None where the file
        cannot be read, is no Python, or nowhere makes it grow.
    """
    tree = source.syntax_tree(file)
    if tree is None:
        return None
    names = names_in(path)
    if names[-1] == "cache_info":
        sites = _cached(tree, file, "".join(names[-2:-1]))
    else:
        sites = _Finder(names, function).find(tree)
    if not sites:
        return None
    likeliest = min(sites)
    code = source.code_at(file, likeliest.line)
    return Culprit(function=likeliest.function, file=file, line=likeliest.line, share=0.0, code=code)


def names_in(path: str) -> list[str]:
    """``['self', 'history']`` of ``self.history['loss']``."""
    return re.sub(r"\[[^]]*\]", "", path).split(".")


class _Scope(NamedTuple):
    """A function (or the module) that the walk is in: its qualified name and the names it binds."""

    name: str
    bound: frozenset[str]


class _Finder:
    """Walks a module for the statements that grow one target."""

    def __init__(self, names: list[str], function: str) -> None:
        self.target = names[-1]
        self.is_attribute = len(names) > 1
        self.function = function
        self.sites: list[_Site] = []

    def find(self, tree: ast.Module) -> list[_Site]:
        self._walk(tree, [_Scope("<module>", frozenset())], qualified="", in_loop=False)
        return self.sites

    def _walk(self, node: ast.AST, scopes: list[_Scope], qualified: str, in_loop: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _FUNCTIONS):
                name = qualified + child.name
                inner = [*scopes, _Scope(name, _bound_names(child))]
                self._walk(child, inner, name + ".<locals>.", in_loop=False)
            elif isinstance(child, ast.ClassDef):
                self._walk(child, scopes, qualified + child.name + ".", in_loop)
            else:
                self._note(child, scopes, in_loop)
                repeated = isinstance(child, source.LOOPS)
                self._walk(child, scopes, qualified, in_loop or repeated)

    def _note(self, node: ast.AST, scopes: list[_Scope], in_loop: bool) -> None:
        for kind, grown in _grown_by(node):
            base = _base(grown)
            if base is None or not self._is_target(base, scopes):
                continue
            form = _rebinding(node, base) if kind == _REBIND else kind
            if form is None:
                continue
            where = scopes[-1].name
            name = where.rpartition(".")[2]
            site = _Site(
                not_per_step=not in_loop and (where == "<module>" or name in _SET_UP),
                elsewhere=not _is_within(where, self.function),
                form=form,
                indirect=self.is_attribute and isinstance(base, ast.Name),
                line=getattr(base, "lineno", 0),
                function=where,
            )
            self.sites.append(site)
        if self._registers(node):
            where = scopes[-1].name
            site = _Site(not in_loop, True, _REGISTER, True, getattr(node, "lineno", 0), where)
            self.sites.append(site)

    def _is_target(self, base: ast.expr, scopes: list[_Scope]) -> bool:
        if isinstance(base, ast.Attribute):
            return self.is_attribute and base.attr == self.target
        if not isinstance(base, ast.Name) or base.id != self.target:
            return False
        owner = next((s.name for s in reversed(scopes) if base.id in s.bound), "<module>")
        if self.is_attribute:  # a global seen as `module.name`, or a cell seen as `function.name`
            return owner == "<module>" or _is_within(self.function, owner)
        return owner == self.function or owner.endswith("." + self.function)

    def _registers(self, node: ast.AST) -> bool:
        """Whether it is ``x.register_foo(...)`` or ``x.add_foo(...)``, for a target ``_foos``."""
        if not (self.target.startswith("_") and isinstance(node, ast.Call)):
            return False
        noun = self.target.strip("_").removesuffix("s")
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return called in (f"register_{noun}", f"add_{noun}")


def _grown_by(node: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """The expressions that a statement or call may make grow, and in which form."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in APPENDING:
            yield _APPEND, node.func.value
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in HEAPS and node.args:
            yield _APPEND, node.args[0]
    elif isinstance(node, ast.AugAssign):
        yield _ADD, node.target
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for assigned in _flat(target):
                yield (_STORE if isinstance(assigned, ast.Subscript) else _REBIND), assigned


def _rebinding(node: ast.AST, base: ast.expr) -> int | None:
    """The form of an assignment whose new value is made of the old one; None if it is not.

    ``x = cat([x, y])`` grows more likely than ``x = x.detach()`` or ``x = x[1:]``.
    """
    value = getattr(node, "value", None)
    wanted = ast.dump(base).replace("Store()", "Load()")
    if value is None or all(ast.dump(part) != wanted for part in ast.walk(value)):
        return None
    reached = _base(value)
    return _REPLACE if reached is not None and ast.dump(reached) == wanted else _REBIND


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    """What is assigned to, tuples and lists taken apart."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _flat(element)
    elif isinstance(target, ast.Starred):
        yield target.value
    else:
        yield target


def _base(node: ast.expr) -> ast.expr | None:
    """The name or attribute that is reached into: ``x`` of ``x[k].setdefault(a, [])[1]``."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node if isinstance(node, (ast.Name, ast.Attribute)) else None


def _bound_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """The names that are local to a function: its arguments, and what it assigns."""
    arguments = function.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    listed += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    bound, declared = {argument.arg for argument in listed}, set()
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            bound.add(node.name)
            continue
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            declared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return frozenset(bound - declared)


def _is_within(inner: str, outer: str) -> bool:
    """Whether a qualified name is `outer` or something in it; `outer` may be only the last part."""
    return f".{inner}.".find(f".{outer}.") >= 0


def _cached(tree: ast.Module, file: str, name: str) -> list[_Site]:
    """Where a function is given its cache: by a decorator, or by a call around it."""
    sites = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            wraps = isinstance(node.value, ast.Call) and "cache" in ast.unparse(node.value.func)
            if wraps and any(ast.unparse(target) == name for target in node.targets):
                sites.append(_Site(False, False, _APPEND, False, node.lineno, name))
        elif isinstance(node, _FUNCTIONS) and node.name == name:
            for decorator in node.decorator_list:
                if "cache" in ast.unparse(decorator):
                    qualified = source.function_at(file, decorator.lineno, name).qualname
                    sites.append(_Site(False, False, _APPEND, False, decorator.lineno, qualified))
    return sites
