"""Who takes the batches of a dataset: the loops over its loaders, as far as one file's source tells all of them.

Names are followed through assignments, arguments and results of the file's own functions, without regard to order:
a name that once stands for a loader of the dataset may always do so. Anything done with the dataset or a loader that
is not known to be harmless makes the answer unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from unstall.optimize.batches import NotClear
from unstall.optimize.bindings import arguments, dotted, parents_of

DATA, LOADER = "data", "loader"
Kind = str | tuple["Kind", ...] | None
"""What an expression may stand for: a dataset, a loader, a tuple of such, or something else (None)."""

_THROUGH = ("enumerate", "tqdm", "track")
_ASKING = ("len", "print", "isinstance", "type", "id")
_MAX_ROUNDS = 20


def loops(tree: ast.Module, cls: str, through: tuple[str, ...] = ()) -> list[ast.For]:
    """All loops over loaders of a class of datasets. Raises NotClear when there may be others, or other uses.

    ``through``: functions that give the batches of their first argument on, as ``enumerate`` does.
    """
    flow = _Flow(tree, cls, (*_THROUGH, *through))
    flow.follow()
    return flow.checked()


class _Flow:
    """What the expressions of one file may stand for."""

    def __init__(self, tree: ast.Module, cls: str, through: tuple[str, ...]):
        self.tree = tree
        self.cls = cls
        self.through = through
        self.kinds: dict[str, Kind] = {}
        self.parents = parents_of(tree)
        self.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        named = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        self.ambiguous = {name for name in named if named.count(name) > 1}
        self.constructors = {
            one.name: method
            for one in ast.walk(tree) if isinstance(one, ast.ClassDef)
            for method in one.body if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        }  # fmt: skip
        self.own = {node for one in tree.body if isinstance(one, ast.ClassDef) and one.name == cls
                    for node in ast.walk(one)}  # fmt: skip
        self.bound: dict[ast.AST, set[str]] = {
            scope: _bound(scope) for scope in ast.walk(tree) if isinstance(scope, _SCOPES)
        }

    # ------------------------------------------------------------------ what stands for what

    def follow(self) -> None:
        """Let the kinds go through the file until no name gets a new one."""
        for _ in range(_MAX_ROUNDS):
            before = dict(self.kinds)
            for node in ast.walk(self.tree):
                if isinstance(node, ast.Assign):
                    kind = self.kind(node.value)
                    for target in node.targets:
                        self._set(target, kind)
                elif isinstance(node, ast.AnnAssign) and node.value is not None:
                    self._set(node.target, self.kind(node.value))
                elif isinstance(node, ast.Return) and node.value is not None:
                    function = self._scope(node)
                    if isinstance(function, ast.FunctionDef):
                        self._note(f"{function.name}()", self.kind(node.value))
                elif isinstance(node, ast.Call) and self._called(node) is not None:
                    for parameter, value in self._given(node):
                        self._note(parameter, self.kind(value))
            if self.kinds == before:
                return
        raise NotClear("what stands for the dataset's loaders cannot be followed")

    def kind(self, node: ast.expr) -> Kind:
        """What an expression may stand for."""
        if isinstance(node, ast.Name):
            return self.kinds.get(self._key(node))
        if isinstance(node, ast.Attribute):
            return (
                DATA if node.attr == "dataset" and self.kind(node.value) == LOADER else self.kinds.get(f".{node.attr}")
            )
        if isinstance(node, (ast.Tuple, ast.List)):
            kinds = tuple(map(self.kind, node.elts))
            return kinds if any(kinds) else None
        if isinstance(node, ast.IfExp):
            return self.kind(node.body) or self.kind(node.orelse)
        if isinstance(node, ast.Subscript):
            held = self.kind(node.value)
            if isinstance(held, tuple) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
                return held[node.slice.value] if -len(held) <= node.slice.value < len(held) else None
            return None
        return self._kind_of_call(node) if isinstance(node, ast.Call) else None

    def _kind_of_call(self, call: ast.Call) -> Kind:
        name = ast.unparse(call.func).rpartition(".")[2]
        if ast.unparse(call.func) == self.cls:
            return DATA
        first = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "dataset"), None)
        if first is not None and self.kind(first) == DATA:
            if name == "DataLoader":
                return LOADER
            if name == "Subset":
                return DATA
            if name == "random_split":
                lengths = call.args[1] if len(call.args) > 1 else None
                return (DATA,) * len(lengths.elts) if isinstance(lengths, (ast.List, ast.Tuple)) else None
        function = self._called(call)
        return self.kinds.get(f"{function.name}()") if function is not None else None

    def _set(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = kind if isinstance(kind, tuple) and len(kind) == len(target.elts) else ()
            for one, part in zip(target.elts, parts):
                self._set(one, part)
        elif isinstance(target, ast.Name):
            self._note(self._key(target), kind)
        elif isinstance(target, ast.Attribute):
            self._note(f".{target.attr}", kind)

    def _note(self, key: str, kind: Kind) -> None:
        if kind is not None and self.kinds.setdefault(key, kind) != kind:
            raise NotClear(f"{key.strip('. ')} stands for different things")

    def _called(self, call: ast.Call) -> ast.FunctionDef | None:
        """The file's own function that a call calls, by its name; of a class, its constructor."""
        name = ast.unparse(call.func).rpartition(".")[2] if dotted(call.func) else ""
        if name in self.constructors:
            return self.constructors[name]
        return self.functions.get(name) if name not in self.ambiguous and name not in self.through else None

    def _given(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """The parameters that a call gives values to."""
        function = self._called(call)
        assert function is not None
        names = [one.arg for one in arguments(function)]
        is_method = isinstance(self.parents.get(function), ast.ClassDef) and (
            function.name == "__init__" or isinstance(call.func, ast.Attribute)
        )
        for name, value in zip(names[is_method:], call.args):
            yield f"{id(function)} {name}", value
        for keyword in call.keywords:
            if keyword.arg in names:
                yield f"{id(function)} {keyword.arg}", keyword.value

    def _scope(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, _SCOPES):
                return node
        return self.tree

    def _key(self, name: ast.Name) -> str:
        """A name in the scope that binds it."""
        scope: ast.AST = name
        while scope is not self.tree:
            scope = self._scope(scope)
            if scope is not self.tree and name.id in self.bound[scope]:
                return f"{id(scope)} {name.id}"
        return f" {name.id}"

    # ------------------------------------------------------------------ what is done with it

    def checked(self) -> list[ast.For]:
        """The loops, after a look at everything that is done with datasets and loaders."""
        found: list[ast.For] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id == self.cls and isinstance(node.ctx, ast.Load):
                parent = self.parents[node]
                if not (isinstance(parent, ast.Call) and node is parent.func) and not isinstance(parent, ast.arg):
                    raise NotClear(f"line {node.lineno} uses the class {self.cls} itself")
            if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                continue
            if node in self.own and _is_own_item(node):
                raise NotClear(f"line {node.lineno} of {self.cls} takes its own samples")
            kind = self.kind(node)
            if kind is not None:
                loop = self._use(node, kind)
                found += [loop] if loop is not None and loop not in found else []
        return found

    def _use(self, node: ast.expr, kind: Kind) -> ast.For | None:
        """The loop that an expression is iterated by, or None where it is only handed on. Raises NotClear."""
        parent = self.parents[node]
        if isinstance(parent, ast.keyword):
            parent = self.parents[parent]
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr, ast.IfExp)):
            return None
        if isinstance(parent, (ast.Tuple, ast.List)) and self.kind(parent) is not None:
            return None
        if isinstance(parent, ast.Subscript) and isinstance(kind, tuple):
            return None
        if isinstance(parent, ast.Attribute) and not parent.attr.startswith(("__", "_")):
            return None
        if isinstance(parent, ast.Compare) and all(isinstance(one, (ast.Is, ast.IsNot)) for one in parent.ops):
            return None
        if isinstance(parent, ast.For) and parent.iter is node and kind == LOADER:
            return parent
        if isinstance(parent, ast.Call) and self._is_harmless(parent, node, kind):
            return self._iterated(parent)
        raise NotClear(f"line {node.lineno} takes the samples of {self.cls} in another way")

    def _is_harmless(self, call: ast.Call, given: ast.expr, kind: Kind) -> bool:
        """Whether a call that is given a dataset or a loader is one of those whose ways are known."""
        name = ast.unparse(call.func).rpartition(".")[2]
        if name == "DataLoader" and kind == DATA:
            own = {one.arg for one in call.keywords}
            if "collate_fn" in own or (None in own and "collate_fn" in ast.unparse(self.tree)):
                raise NotClear(f"line {call.lineno} makes batches in a way of its own")
            return True
        if name in ("Subset", "random_split") and kind == DATA:
            return self.kind(call) is not None
        if name in self.through:
            return kind == LOADER and self._iterated(call) is not None
        starred = any(isinstance(one, ast.Starred) for one in call.args) or None in {one.arg for one in call.keywords}
        return name in _ASKING or name.endswith("Sampler") or (self._called(call) is not None and not starred)

    def _iterated(self, call: ast.Call) -> ast.For | None:
        """The loop over ``enumerate(tqdm(loader))`` and the like."""
        while ast.unparse(call.func).rpartition(".")[2] in self.through:
            parent = self.parents[call]
            if isinstance(parent, ast.For) and parent.iter is call:
                return parent
            if not isinstance(parent, ast.Call):
                return None
            call = parent
        return None


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _bound(scope: ast.AST) -> set[str]:
    """Names that a function binds: parameters and what it sets, not what its inner functions do."""
    found: set[str] = set()
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)
    return found - {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}


def _is_own_item(node: ast.expr) -> bool:
    """``self[index]``, ``self.__getitem__``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Attribute) and node.attr == "__getitem__"
