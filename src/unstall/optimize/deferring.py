"""Whether a function that is called for its effect only may run a little later, in a thread: a reading of the source.

Its arguments are copied when it is called, so that it sees what was true then. What it reads besides must be its own:
attributes that its class makes, functions, modules, constants. It may give nothing back, and change nothing of others.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from unstall.optimize import bindings
from unstall.optimize.purity import may_differ

_MUTATING = {
    "append", "appendleft", "extend", "insert", "pop", "popitem", "popleft", "remove", "discard", "clear", "sort",
    "reverse", "update", "add", "setdefault", "fill", "put", "train", "eval", "step", "zero_grad", "backward",
    "load_state_dict", "register_forward_hook", "register_hook", "write", "writelines", "writerow",
}  # fmt: skip
_SINKS = {
    "add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "add_text", "add_video",
    "add_audio", "add_embedding", "add_pr_curve", "flush",
}  # fmt: skip
"""Methods of summary writers, which may be called from several threads."""
_FORBIDDEN = {
    "input", "exec", "eval", "super", "locals", "globals", "vars", "setattr", "delattr", "next", "exit", "quit",
    "breakpoint", "manual_seed", "chdir", "_exit", "perf_counter", "monotonic", "sleep",
}  # fmt: skip
_FORBIDDEN_MODULES = (
    "sys.", "signal.", "threading.", "multiprocessing.", "dist.", "torch.distributed.", "torch.set_", "mlflow.",
    "logging.", "tqdm", "plt.show", "plt.pause", "plt.ion", "pyplot.show", "pyplot.pause", "matplotlib.use",
)  # fmt: skip
_SETTING_UP_PLOTS = {"style", "rcParams", "switch_backend", "ioff", "rc"}
_LIBRARY_PARENTS = {"object", "ABC", "abc.ABC"}
_CONSTRUCTION = ("__init__", "__new__", "__post_init__", "__init_subclass__")


class NotDeferrable(Exception):
    """The function has to run where it is called; the message says why."""


@dataclass(frozen=True)
class Deferrable:
    """A function that may run later."""

    name: str
    first_line: int
    """Of ``def``."""
    shared: tuple[str, ...]
    """Parameters that are not copied: ``self``, writers of summaries."""
    waiting: tuple[int, ...]
    """Lines of ``def`` of the methods that must wait for it: they may look at what it has done."""


def examine(text: str, name: str, line: int) -> Deferrable:
    """The function of a name around a line, if it may run later. Raises NotDeferrable."""
    return _Reading(ast.parse(text)).examine(name, line)


def function_around(tree: ast.AST, name: str, line: int) -> ast.FunctionDef | None:
    """The function of a name that a line is in."""
    short = name.rpartition(".")[2]
    holding = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == short and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(holding, key=lambda node: node.lineno, default=None)


class _Reading:
    """One module, and a function of it that is to run later with all that it calls in the module."""

    def __init__(self, tree: ast.Module):
        self.tree = tree
        self.functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        self.classes = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)}
        self.bound = set(bindings.bound_once_for_all(tree))
        self.variables = set(bindings.module_variables(tree))
        self.pyplot = set(_pyplot_names(tree))
        self.cls: ast.ClassDef | None = None
        self.methods: dict[str, ast.FunctionDef] = {}
        self.written: set[str] = set()
        self.closure: dict[int, ast.FunctionDef] = {}

    def examine(self, name: str, line: int) -> Deferrable:
        function = function_around(self.tree, name, line)
        if function is None:
            raise NotDeferrable(f"{name} was not found in its file")
        self.cls = next((one for one in self.classes.values() if function in one.body), None)
        if self.cls is None and function not in self.tree.body:
            raise NotDeferrable(f"{name} is defined inside another function")
        if self.cls is not None:
            self._check_class(self.cls)
        _check_signature(function)
        shared = self._sinks(function)
        self._read(function, shared)
        self._check_plots()
        if self.cls is not None:
            self._check_attributes()
            shared = ["self", *shared]
        return Deferrable(function.name, function.lineno, tuple(shared), tuple(self._waiting(function)))

    # ------------------------------------------------------------------ the class

    def _check_class(self, cls: ast.ClassDef) -> None:
        self.methods = {one.name: one for one in cls.body if isinstance(one, ast.FunctionDef)}
        parents = [ast.unparse(one) for one in cls.bases]
        for parent in parents:
            if parent in self.classes and not self._is_empty(self.classes[parent]):
                raise NotDeferrable(f"{cls.name} inherits from {parent}")
            if parent not in self.classes and parent not in _LIBRARY_PARENTS:
                raise NotDeferrable(f"{cls.name} is a {parent}, which may look at it at any time")
        if any(cls.name in map(ast.unparse, other.bases) for other in self.classes.values()):
            raise NotDeferrable(f"other classes inherit from {cls.name}")

    def _is_empty(self, cls: ast.ClassDef) -> bool:
        """A base class of hooks that do nothing."""
        functions = [one for one in cls.body if isinstance(one, ast.FunctionDef)]
        return not cls.bases and all(
            isinstance(statement, ast.Pass)
            or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
            for function in functions
            for statement in function.body
        )

    def _check_attributes(self) -> None:
        """What the function sets may be looked at by its own class only: those methods wait for it."""
        assert self.cls is not None
        inside = set(map(id, ast.walk(self.cls)))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and id(node) not in inside and node.attr in self.written:
                raise NotDeferrable(f"it sets {node.attr}, which line {node.lineno} looks at")

    def _waiting(self, function: ast.FunctionDef) -> Iterator[int]:
        """Methods that others may call while it is still to run."""
        if self.cls is None:
            return
        inside = {id(node) for one in self.closure.values() for node in ast.walk(one)}
        asked = {
            node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute) and id(node) not in inside
        }
        for name, method in self.methods.items():
            if method is function or name in _CONSTRUCTION or any(
                ast.unparse(one) == "staticmethod" for one in method.decorator_list
            ):  # fmt: skip
                continue
            if name in asked or (name.startswith("__") and name.endswith("__")) or id(method) not in self.closure:
                yield method.lineno

    # ------------------------------------------------------------------ the function and what it calls

    def _sinks(self, function: ast.FunctionDef) -> list[str]:
        """Parameters that are summary writers: only ever used for calls that add a summary."""
        found = []
        for argument in bindings.arguments(function):
            uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == argument.arg]
            sinks = [
                call.func.value
                for call in ast.walk(function)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _SINKS
            ]
            if uses and all(any(use is sink for sink in sinks) for use in uses):
                found.append(argument.arg)
        return found

    def _read(self, function: ast.FunctionDef, sinks: Iterable[str] = ()) -> None:
        if id(function) in self.closure:
            return
        self.closure[id(function)] = function
        given = {one.arg for one in bindings.arguments(function)} - {"self"} - set(sinks)
        local = given | set(sinks) | {"self"} | bindings.names_made(function)
        foreign = given | bindings.aliases(function, given)
        parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(function):
            if isinstance(node, (ast.Global, ast.Nonlocal, ast.Raise, ast.Await, ast.Delete)):
                raise NotDeferrable(f"line {node.lineno} is one that the program may depend on at once")
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                self._store(node, foreign, local)
            elif isinstance(node, ast.Call):
                self._call(node, foreign, local)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._name(node, local, parents)
            elif isinstance(node, ast.Attribute) and node.attr in ("grad_fn", "environ"):
                raise NotDeferrable(f"line {node.lineno} uses {node.attr}")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                self._own(node, parents)

    def _store(self, node: ast.Attribute | ast.Subscript, foreign: set[str], local: set[str]) -> None:
        root, first = bindings.root(node)
        if root == "self" and self.cls is not None and first is not None:
            self.written.add(first)
        elif root in foreign or root not in local:
            raise NotDeferrable(f"line {node.lineno} changes {root or 'something'} of its caller")

    def _call(self, call: ast.Call, foreign: set[str], local: set[str]) -> None:
        name = ast.unparse(call.func)
        head, _, last = name.rpartition(".")
        root, first = bindings.root(call.func)
        if may_differ(name):
            raise NotDeferrable(f"line {call.lineno} calls {name}: random numbers or the time")
        if last in _FORBIDDEN or name.startswith(_FORBIDDEN_MODULES) or (head == "" and last in ("print", "pprint")
                                                                         and not _to_file(call)):  # fmt: skip
            raise NotDeferrable(f"line {call.lineno} calls {name}")
        if (last in _MUTATING or (last.endswith("_") and not last.endswith("__"))) and head:
            if root in foreign:
                raise NotDeferrable(f"line {call.lineno} changes {root}, which its caller gave it")
            if root not in local and root not in self.bound:
                raise NotDeferrable(f"line {call.lineno} changes {root or head}")
            if root == "self" and first is not None:
                self.written.add(first)
        if head == "self" and self.cls is not None:
            method = self.methods.get(last)
            if method is None:
                raise NotDeferrable(f"line {call.lineno} calls {name}, which is not known before the program runs")
            self._read(method)
        elif not head and last in self.functions and last not in local:
            self._read(self.functions[last])
        elif not head and last in self.classes and last not in local:
            raise NotDeferrable(f"line {call.lineno} makes a {last}")

    def _name(self, node: ast.Name, local: set[str], parents: dict[ast.AST, ast.AST]) -> None:
        """A name from outside: a module, a function, a class, a constant; a variable only where its value counts."""
        name = node.id
        if name in local or name in self.bound or hasattr(builtins, name):
            return
        if name not in self.variables or not bindings.only_its_value(node, parents):
            raise NotDeferrable(f"line {node.lineno} uses {name}, which may change before it runs")

    def _own(self, node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> None:
        """An attribute of its object must have been made by the object, or be used for its value only."""
        if node.attr in self.methods or not isinstance(node.ctx, ast.Load):
            return
        if not self._is_made_by_itself(node.attr) and not bindings.only_its_value(node, parents):
            raise NotDeferrable(f"line {node.lineno} uses self.{node.attr}, which others may change before it runs")

    def _is_made_by_itself(self, attribute: str) -> bool:
        """Whether every value that the class gives to an attribute is new, not something it was given."""
        assert self.cls is not None
        if "dataclass" in "".join(map(ast.unparse, self.cls.decorator_list)):
            return False
        values = []
        for method in self.methods.values():
            given = {one.arg for one in bindings.arguments(method)}
            for node in ast.walk(method):
                pairs = bindings.assignments(node)
                for target, value in pairs:
                    if isinstance(target, ast.Attribute) and ast.unparse(target) == f"self.{attribute}":
                        values.append(bindings.is_new(value, given))
        return bool(values) and all(values)

    def _check_plots(self) -> None:
        """What pyplot draws goes into the current figure of the process: all its use must be in the thread."""
        inside = {id(node) for one in self.closure.values() for node in ast.walk(one)}
        loads = [one for one in ast.walk(self.tree) if isinstance(one, ast.Name) and one.id in self.pyplot]
        if not any(id(one) in inside for one in loads):
            return
        harmless = {
            id(one.value)
            for one in ast.walk(self.tree)
            if isinstance(one, ast.Attribute) and one.attr in _SETTING_UP_PLOTS
        }
        for one in loads:
            if id(one) not in inside | harmless:
                raise NotDeferrable(f"line {one.lineno} draws with pyplot as well")


def _check_signature(function: ast.FunctionDef) -> None:
    if function.decorator_list:
        raise NotDeferrable(f"{function.name} is decorated")
    if function.name.startswith("__"):
        raise NotDeferrable(f"{function.name} is called by the interpreter")
    for node in ast.walk(function):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            raise NotDeferrable(f"{function.name} is a generator")
        gives = isinstance(node, ast.Return) and node.value is not None
        if gives and not (isinstance(node.value, ast.Constant) and node.value.value is None):  # type: ignore[attr-defined]
            raise NotDeferrable(f"{function.name} gives something back")


def _pyplot_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.asname for one in node.names if one.name == "matplotlib.pyplot" and one.asname)
        elif isinstance(node, ast.ImportFrom) and node.module == "matplotlib":
            yield from (one.asname or one.name for one in node.names if one.name == "pyplot")


def _to_file(call: ast.Call) -> bool:
    return any(one.arg == "file" and not ast.unparse(one.value).startswith("sys.") for one in call.keywords)
