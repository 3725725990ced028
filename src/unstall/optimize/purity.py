"""What in a sample's making is the same every time: a reading of the source, to be checked by running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

_RANDOM_MODULES = ("random", "np.random", "numpy.random", "secrets", "uuid", "time", "torch.random", "datetime")
_RANDOM_CALLS = {
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "bernoulli", "multinomial", "normal", "uniform",
    "shuffle", "choice", "choices", "sample", "random", "dropout", "urandom", "getrandbits", "now", "input",
    "default_rng", "integers", "permutation", "permuted", "poisson", "exponential",
}  # fmt: skip
_EFFECTS = {"print", "exec", "eval", "input", "write", "writelines", "append", "update", "add", "extend", "put", "log"}
"""Calls that are made for what they do; skipping one on a later visit would change the program."""

_MAX_DEPTH = 6


@dataclass
class Purity:
    """Judges statements of one class's methods in one module."""

    tree: ast.Module
    cls: ast.ClassDef
    written: set[str] = field(default_factory=set)
    """Attributes of ``self`` that the statements judged so far set."""
    reason: str = ""

    def is_steady(self, statement: ast.stmt | ast.expr, local: set[str]) -> bool:
        """Whether this computes the same on every visit, as far as the source tells. ``local``: its names."""
        return self._steady(statement, local, 0)

    def _steady(self, node: ast.AST, local: set[str], depth: int) -> bool:
        for one in ast.walk(node):
            if isinstance(one, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete)):
                return self._no(one, "has an effect")
            if isinstance(one, (ast.Assign, ast.AugAssign)) and not self._targets(one):
                return self._no(one, "changes something outside")
            if isinstance(one, ast.Call) and not self._call(one, local, depth):
                return False
        return True

    def _targets(self, node: ast.Assign | ast.AugAssign) -> bool:
        """Attributes of self may be set (a file opened once); anything else that is not a local name may not."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for one in ast.walk(target):
                if not isinstance(getattr(one, "ctx", None), ast.Store):
                    continue
                if isinstance(one, ast.Attribute):
                    if ast.unparse(one.value) != "self":
                        return False
                    self.written.add(one.attr)
                elif isinstance(one, ast.Subscript) and _changes_outside(one):
                    return False
        return True

    def _call(self, call: ast.Call, local: set[str], depth: int) -> bool:
        name = ast.unparse(call.func)
        head, _, last = name.rpartition(".")
        if may_differ(name):
            return self._no(call, f"calls {name}, which may differ every time")
        if last.lower().startswith(("random", "rand_")) or "augment" in last.lower() or "jitter" in last.lower():
            return self._no(call, f"calls {name}, which sounds random")
        if head == "self":
            method = _function(self.cls.body, last)
            if method is None:
                return self._no(call, f"calls self.{last}, which is not known before the program runs")
            return depth < _MAX_DEPTH and self._body(method, depth)
        if not head:
            function = _function(self.tree.body, last)
            if function is not None:
                return depth < _MAX_DEPTH and self._body(function, depth)
            if last in local:
                return self._no(call, f"calls {last}, a variable")
            if last in ("print", "exec", "eval", "input"):
                return self._no(call, f"calls {last}")
        elif head.startswith("self.") and last in _EFFECTS:
            return self._no(call, f"calls {name}, which changes the dataset")
        return True

    def _body(self, function: ast.FunctionDef, depth: int) -> bool:
        names = {argument.arg for argument in function.args.args} - {"self"}
        names |= {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        return all(self._steady(statement, names, depth + 1) for statement in function.body)

    def _no(self, node: ast.AST, why: str) -> bool:
        self.reason = self.reason or f"line {getattr(node, 'lineno', '?')} {why}"
        return False

    def changing_attributes(self) -> set[str]:
        """Attributes that are set anywhere in the module but in the class's ``__init__``: they may change."""
        first = _function(self.cls.body, "__init__")
        own = set(map(id, ast.walk(first))) if first is not None else set()
        return {
            node.attr
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and id(node) not in own
        }


def may_differ(name: str) -> bool:
    """Whether a call of this dotted name may give something else every time: random numbers, the time."""
    head, _, last = name.rpartition(".")
    return last in _RANDOM_CALLS or any(head == one or head.startswith(one + ".") for one in _RANDOM_MODULES)


def attributes_read(statements: Iterable[ast.stmt]) -> set[str]:
    """Attributes of ``self`` that statements read."""
    return {
        node.attr
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        and isinstance(node.ctx, ast.Load)
    }  # fmt: skip


def names(statements: Iterable[ast.AST], context: type[ast.expr_context]) -> list[str]:
    """Names that statements load or store, in the order they appear."""
    found = [
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    ]
    return list(dict.fromkeys(found))


def _function(body: Iterable[ast.stmt], name: str) -> ast.FunctionDef | None:
    return next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def _changes_outside(node: ast.Subscript) -> bool:
    """Whether what is set at an index is not a local name's."""
    return not isinstance(_root(node), ast.Name) or "self" in ast.unparse(node)


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node
