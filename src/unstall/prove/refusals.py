"""What a patch may not touch: what it would be measured by. Seen in the source, before anything is run.

This catches plain cases early and says where. It is not what a proof rests on: time, output, files and exit code are
taken from outside, whatever the program does to its own process.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from unstall.prove.trees import Sides, content_of
from unstall.records.proof import Difference

_MEASURING = {"time", "timeit", "builtins", "sys", "os", "atexit", "threading", "torch", "signal", "resource"}
_SETTINGS = re.compile(r"\.(backends|config|path|argv|stdout|stderr|_dynamo|_inductor)\b")
"""Attributes of these modules that programs set without changing what is measured."""
_WITHOUT_SOURCE = (".pyc", ".pyo")
_INTERPRETER = re.compile(r"\bpythonapi\b|\bPyEval_Set|\bPyThreadState_")
"""Python's own functions in C, by which a program can change how it is run."""
_STARTED_BY_PYTHON = ("sitecustomize.py", "usercustomize.py")
_SHADOWED = {*sys.stdlib_module_names, "torch", "numpy", "unstall"}
_OURS = re.compile(r"UNSTALL_|unstall[./_]child|/proc/self/(environ|mountinfo)")
_SETTERS = ("setattr", "delattr", "__setattr__", "__delattr__")
_MOCK = re.compile(r"(unittest\.)?mock(\.|$)")
_OF_DICTS = ("update", "setdefault", "pop", "clear", "__setitem__", "__delitem__")
"""Methods that change a namespace."""
_STORED = (ast.Store, ast.Del)
_FOLLOWED_BY = ("sys", "threading")
_FOLLOWING = ("gettrace", "settrace", "getprofile", "setprofile", "monitoring")
"""What follows the lines of a program, and ends that, in ``sys`` and ``threading``."""


def first(sides: Sides) -> Difference | None:
    """The first thing that a change does to what it is measured by; None for nothing that is seen."""
    for path, before, after in sides.differing:
        if after is None:
            continue
        reason = _of_name(path, before, sides)
        if reason:
            return Difference(kind="effects", place=path.name, detail=reason)
        if path.suffix in (".py", ".pyw"):
            old, new = (list(_acts(content or b"")) for content in (before, after))
            added = Counter(text for _, text in new) - Counter(text for _, text in old)
            for line, text in new:
                if text in added:
                    return Difference(kind="effects", place=f"{path.name}:{line}", detail=text)
    return None


def _of_name(path: Path, before: bytes | None, sides: Sides) -> str | None:
    if path.name in _STARTED_BY_PYTHON or path.suffix == ".pth":
        return "Python runs this file in every process, before the program"
    if path.suffix in _WITHOUT_SOURCE:
        return "compiled Python: nobody can read what it does; bring its source"
    module = path.parent if path.name == "__init__.py" else path.with_suffix("")
    if before is None and path.suffix == ".py" and module.name in _SHADOWED and not _is_package(module.parent, sides):
        return f"a new file that hides the module {module.name}"
    return None


def _is_package(folder: Path, sides: Sides) -> bool:
    """Whether Python finds what is in the folder by the folder's name, with an ``__init__.py`` or without.

    Where a script may lie, Python looks first, whatever the change makes of that folder.
    """
    init = folder / "__init__.py"
    if _was_there(init, sides):
        return True
    if any(_was_there(path, sides) for path in folder.glob("*.py")):
        return False
    if init in sides.changed or init.exists():
        return True
    importing = re.compile(rf"^\s*(from|import)\s+{re.escape(folder.name)}\b".encode(), re.MULTILINE)
    gone = {path for path, content in sides.changed.items() if content is None}
    beside = {*folder.parent.glob("*.py"), *sides.changed} - gone
    sources = [path for path in beside if path.parent == folder.parent and path.suffix == ".py"]
    return any(importing.search(content_of(sides.changed, path)) for path in sources)


def _was_there(path: Path, sides: Sides) -> bool:
    return sides.original[path] is not None if path in sides.original else path.exists()


def _acts(content: bytes) -> Iterator[tuple[int, str]]:
    """(line, what is done there) of all that is done to clocks, counters, torch's own classes and unstall."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return  # it does not run either
    names = dict(_imported(tree))
    for node in ast.walk(tree):
        for text in _of_node(node, names):
            yield getattr(node, "lineno", 1), text


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(name in this module, module that it comes from) of what is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _of_node(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, _STORED):
        yield from _set(node, names)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, names)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        modules = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
        if any(module.split(".")[0] == "unstall" for module in modules):
            yield "imports unstall"
        if any(_INTERPRETER.search(module) for module in modules):
            yield f"calls the interpreter's own functions: {ast.unparse(node)}"
        if getattr(node, "module", None) in _FOLLOWED_BY and {*modules} & {*_FOLLOWING}:
            yield f"asks or changes who follows the program's lines: {ast.unparse(node)}"
    elif isinstance(node, ast.Attribute) and node.attr in _FOLLOWING and _origin(node, names) in _FOLLOWED_BY:
        yield f"asks or changes who follows the program's lines: {ast.unparse(node)}"
    elif isinstance(node, ast.Attribute) and _INTERPRETER.search(node.attr):
        yield f"calls the interpreter's own functions: {ast.unparse(node)}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _OURS.search(node.value):
            yield f"reads what unstall tells its own processes: {node.value[:60]!r}"
        elif _INTERPRETER.search(node.value):
            yield f"names the interpreter's own functions: {node.value[:60]!r}"


def _of_call(call: ast.Call, names: dict[str, str]) -> Iterator[str]:
    """What a call replaces: ``setattr(time, ...)``, ``mock.patch("time.sleep")``, ``vars(time).update(...)``."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if called in _SETTERS and call.args:
        yield from _set(ast.Attribute(call.args[0], "…"), names)
    if _MOCK.match(_origin(call.func, names) or "") and call.args:
        target = call.args[0]
        text = target.value if isinstance(target, ast.Constant) and isinstance(target.value, str) else None
        if (text or "").split(".")[0] in _MEASURING:
            yield f"replaces a part of a library: {ast.unparse(call)}"
        elif text is None:
            yield from _set(ast.Attribute(target, "…"), names)
    holder = _namespace(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if holder is not None and called in _OF_DICTS:
        yield from _set(ast.Attribute(holder, "__dict__"), names)


def _namespace(node: ast.expr) -> ast.expr | None:
    """What ``vars(x)`` and ``x.__dict__`` are the names of; None of anything else."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    is_vars = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args
    return node.args[0] if isinstance(node, ast.Call) and is_vars else None


def _set(target: ast.expr, names: dict[str, str]) -> Iterator[str]:
    """What setting a target replaces, where that belongs to a module that measures."""
    holder = _namespace(target.value) if isinstance(target, ast.Subscript) else None
    if holder is not None:
        target = ast.Attribute(holder, "__dict__")
    is_modules = isinstance(target, ast.Subscript) and ast.unparse(target.value).endswith("sys.modules")
    if is_modules:
        yield f"replaces a module: {ast.unparse(target)}"
    if not isinstance(target, ast.Attribute):
        return
    origin = _origin(target, names)
    dotted = f".{origin}.{target.attr}.{ast.unparse(target)}"
    if origin and origin.split(".")[0] in _MEASURING and not _SETTINGS.search(dotted):
        yield f"replaces a part of a library: {ast.unparse(target)}"


def _origin(node: ast.expr, names: dict[str, str]) -> str | None:
    """The module that a dotted name begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return names.get(node.id) if isinstance(node, ast.Name) else None
