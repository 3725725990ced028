"""A loop that calls a model once an item, read as three parts: what is made of an item, the call, and what follows.

The first two may run ahead of the third, for many items at once, when nothing that follows matters to them and they do
nothing but compute. That is a reading of the source, which the comparison then checks by running it, see child.batches.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from unstall.optimize.bindings import dotted, parents_of
from unstall.optimize.case import Call
from unstall.optimize.purity import names

_AROUND = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Call, ast.keyword, ast.Attribute, ast.Subscript,
           ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.List, ast.FormattedValue, ast.JoinedStr)  # fmt: skip
"""What may stand between the call and its statement: in each of these the call is always made, and once."""

_CONTEXTS = ("no_grad", "inference_mode", "autocast")
_LEAVES = (ast.Return, ast.Break, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete,
           ast.FunctionDef, ast.ClassDef, ast.AsyncFor, ast.AsyncWith)  # fmt: skip
_WAITS = {"next", "input", "print", "open_connection", "recv", "accept", "readline", "get_nowait", "grab", "poll"}
_CLOCKS = {"time", "perf_counter", "monotonic", "process_time", "perf_counter_ns", "time_ns", "monotonic_ns", "record",
           "synchronize"}  # fmt: skip
_SIZED = {"range", "list", "sorted", "tuple", "dict", "listdir", "glob", "items", "keys", "values", "tolist", "split",
          "arange", "splitlines", "trange"}  # fmt: skip
_WRAPPERS = {"enumerate", "zip", "reversed", "tqdm", "track"}


class NotSafe(Exception):
    """The loop may not run ahead; the message says why."""


class NotInLoop(NotSafe):
    """The call is in no loop of its function: a caller may have one."""


@dataclass(frozen=True)
class Ahead:
    """The loop, taken apart. Statements are those of the loop's body, or of the ``with`` in it that holds the call."""

    loop: ast.For
    within: ast.With | None
    """``with torch.no_grad():`` and its like around the call, directly in the loop."""
    prepare: tuple[ast.stmt, ...]
    statement: ast.stmt
    """That holds the call."""
    call: ast.Call
    inputs: tuple[ast.expr, ...]
    """Arguments that differ from item to item."""
    kept: tuple[str, ...]
    """Names that are set for the item and read by what follows."""
    sized: tuple[str, ...]
    """Source of what is looped over, as far as only the running program knows whether it is at hand as a whole."""
    numpy: str | None
    """The module's name for NumPy."""


def take_apart(text: str, seen: Call) -> Ahead:
    """The loop around a call, if what comes before the call may run ahead. Raises NotSafe."""
    tree = ast.parse(text)
    parents = parents_of(tree)
    call = _call(tree, seen)
    statement = _statement(call, parents)
    loop, within = _loop(statement, parents)
    prepare, rest = _parts(loop, within, statement)
    own = _own_names(loop, prepare)
    inputs = _inputs(call, own)
    scope = _scope(loop, parents)
    _check_parts(loop, prepare)
    _check_apart(tree, parents, loop, prepare, call, inputs, [statement, *rest], own)
    return Ahead(
        loop, within, tuple(prepare), statement, call, inputs, _kept(scope, [*prepare, *inputs], own),
        _sized(loop.iter), _numpy(tree),
    )  # fmt: skip


def _call(tree: ast.Module, seen: Call) -> ast.Call:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and seen.span == (
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset,
        ):  # fmt: skip
            return node
    raise NotSafe("the call was not found in the source")


def _statement(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> ast.stmt:
    """The statement around the call, in which it is made exactly once."""
    node: ast.AST = call
    while not isinstance(node, ast.stmt):
        node = parents[node]
        if not isinstance(node, _AROUND):
            kind = "a comprehension" if isinstance(node, (ast.comprehension, ast.ListComp)) else "a condition"
            inside = isinstance(node, (ast.Return, ast.withitem, ast.Lambda))
            raise NotInLoop("it is in no loop") if inside else NotSafe(f"line {call.lineno}: the call is in {kind}")
    return node


def _loop(statement: ast.stmt, parents: dict[ast.AST, ast.AST]) -> tuple[ast.For, ast.With | None]:
    around = parents[statement]
    within = around if isinstance(around, ast.With) and all(map(_is_context, around.items)) else None
    around = parents[within] if within is not None else around
    if isinstance(around, ast.For):
        if around.orelse or statement in around.orelse or around.type_comment:
            raise NotSafe(f"line {around.lineno}: the loop has an else")
        return around, within
    node: ast.AST = statement
    while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)):
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            raise NotSafe(f"line {statement.lineno}: whether the model is called depends on something")
        node = parents[node]
    raise NotInLoop("it is in no loop")


def _is_context(item: ast.withitem) -> bool:
    """A context that only sets how torch computes."""
    made = item.context_expr
    return item.optional_vars is None and isinstance(made, ast.Call) and _last(made.func) in _CONTEXTS


def _parts(loop: ast.For, within: ast.With | None, statement: ast.stmt) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """(what comes before the call's statement, what follows it)."""
    if within is None:
        index = loop.body.index(statement)
        return loop.body[:index], loop.body[index + 1 :]
    index, inner = loop.body.index(within), within.body.index(statement)
    return loop.body[:index] + within.body[:inner], within.body[inner + 1 :] + loop.body[index + 1 :]


def _own_names(loop: ast.For, prepare: list[ast.stmt]) -> set[str]:
    """Names that belong to an item."""
    if any(isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)) for node in ast.walk(loop.target)):
        raise NotSafe(f"line {loop.lineno}: the loop sets more than names")
    return set(names([loop.target, *prepare], ast.Store))


def _inputs(call: ast.Call, own: set[str]) -> tuple[ast.expr, ...]:
    if own & set(names([call.func], ast.Load)):
        raise NotSafe(f"line {call.lineno}: each item has a model of its own")
    found = []
    for value in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if own & set(names([value], ast.Load)):
            found.append(value)
    packed = {id(keyword.value) for keyword in call.keywords if keyword.arg is None}
    if any(isinstance(value, ast.Starred) or id(value) in packed for value in found):
        raise NotSafe(f"line {call.lineno}: the arguments are packed")
    if not found:
        raise NotSafe(f"line {call.lineno}: what the model is given does not come from the loop")
    return tuple(found)


# ------------------------------------------------------------------ what may run ahead


def _check_parts(loop: ast.For, prepare: list[ast.stmt]) -> None:
    """What is made of an item only computes, and the loop as a whole does not take its time. Raises NotSafe."""
    for node in ast.walk(loop):
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise NotSafe(f"line {node.lineno}: results are handed out while the loop runs")
        if isinstance(node, ast.Call) and _last(node.func) in _CLOCKS:
            raise NotSafe(f"line {node.lineno}: the loop takes the time of its turns")
    known: set[str] = set(names([loop.target], ast.Store))
    own = known | set(names(prepare, ast.Store))
    for statement in prepare:
        for node in ast.walk(statement):
            if isinstance(node, _LEAVES):
                raise NotSafe(f"line {node.lineno}: what is made of an item has an effect on the rest")
            if isinstance(node, ast.Call) and _last(node.func) in _WAITS:
                raise NotSafe(f"line {node.lineno}: {_last(node.func)} may not be called ahead")
            place = node if isinstance(node, (ast.Attribute, ast.Subscript)) else None
            if place is not None and isinstance(place.ctx, ast.Store) and _root(place) not in known:
                raise NotSafe(f"line {place.lineno}: {ast.unparse(place)} is changed")
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _root(node.value.func) not in known:
                raise NotSafe(f"line {node.lineno}: {ast.unparse(node.value.func)} is called for its effect")
        early = [name for name in _read_first(statement) if name in own - known]
        if early:
            raise NotSafe(f"line {statement.lineno}: {early[0]} comes from the item before")
        known |= set(names([statement], ast.Store))


def _read_first(statement: ast.stmt) -> list[str]:
    """Names that a statement reads and does not set for itself (as comprehensions and ``with`` do)."""
    read = names([statement], ast.Load)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id, *read]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
        bound = {name for node in ast.walk(statement) if isinstance(node, ast.comprehension)
                 for name in names([node.target], ast.Store)}  # fmt: skip
        return [name for name in read if name not in bound]
    return [name for name in read if name not in set(names([statement], ast.Store))]


def _check_apart(
    tree: ast.Module,
    parents: dict[ast.AST, ast.AST],
    loop: ast.For,
    prepare: list[ast.stmt],
    call: ast.Call,
    inputs: tuple[ast.expr, ...],
    rest: list[ast.stmt],
    own: set[str],
) -> None:
    """Nothing that follows the call changes what the next items are made from. Raises NotSafe."""
    modules = imported(tree)
    parts = [loop.iter, *prepare, call]
    read = {path for part in parts for path in paths_read(part) if path.partition(".")[0] not in own | modules}
    inside = set(ast.walk(call))
    for changed in changed_names(rest, inside, _class_around(loop, parents)):
        if changed.partition(".")[0] in modules:
            continue
        for path in read:
            if _covers(changed, path) or _covers(path, changed):
                raise NotSafe(f"{changed} may change from item to item, and {path} is needed for the next")


def _covers(whole: str, part: str) -> bool:
    return part == whole or part.startswith(whole + ".")


def paths_read(node: ast.AST) -> Iterator[str]:
    """The dotted names that are read in a node, whole."""
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        path = dotted(node)
        if path:
            yield path
            return
    for one in ast.iter_child_nodes(node):
        yield from paths_read(one)


def changed_names(
    statements: Iterable[ast.AST], skipped: Collection[ast.AST] = (), cls: ast.ClassDef | None = None, depth: int = 0
) -> Iterator[str]:
    """The dotted names that statements set, or call a method of: that may change it."""
    for statement in statements:
        for node in ast.walk(statement):
            if node in skipped:
                continue
            set_or_deleted = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
            if set_or_deleted and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                yield dotted(node.value if isinstance(node, ast.Subscript) else node) or _root(node)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                receiver = dotted(node.func.value)
                method = _method(cls, node.func.attr) if receiver == "self" else None
                if method is not None and depth < 4:
                    yield from changed_names(method.body, (), cls, depth + 1)
                elif receiver or isinstance(node.func.value, (ast.Subscript, ast.Attribute)):
                    yield receiver or _root(node.func.value)


# ------------------------------------------------------------------ names and places


def _kept(scope: ast.AST, ahead: list[ast.AST], own: set[str]) -> tuple[str, ...]:
    """The item's names that are read anywhere but in what runs ahead."""
    inside = {node for part in ahead for node in ast.walk(part)}
    read = [
        node.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del)) and node not in inside
    ]
    return tuple(name for name in dict.fromkeys(read) if name in own)


def _scope(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    """The function around a node, or the module."""
    while node in parents and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        node = parents[node]
    return node


def _class_around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.ClassDef | None:
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.ClassDef):
            return node
    return None


def _method(cls: ast.ClassDef | None, name: str) -> ast.FunctionDef | None:
    body = cls.body if cls is not None else []
    return next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def _sized(looped: ast.expr) -> tuple[str, ...]:
    """What must have a length for the loop to be known as a whole, beyond what the source shows. Raises NotSafe."""
    if isinstance(looped, (ast.List, ast.Tuple, ast.ListComp, ast.Set, ast.Dict)):
        return ()
    if isinstance(looped, (ast.Name, ast.Attribute, ast.Subscript)):
        return (ast.unparse(looped),)
    if isinstance(looped, ast.Call):
        last = _last(looped.func)
        if last in _SIZED:
            return ()
        if last in _WRAPPERS:
            return tuple(one for arg in looped.args if not isinstance(arg, ast.Constant) for one in _sized(arg))
    raise NotSafe(f"line {looped.lineno}: {ast.unparse(looped)} may be a stream, which is not known ahead")


def imported(tree: ast.Module) -> set[str]:
    """The names that a module's imports bind."""
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


def _numpy(tree: ast.Module) -> str | None:
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "numpy":
                    return alias.asname or alias.name
    return None


def _last(function: ast.expr) -> str:
    """The last part of the name that is called."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _root(node: ast.expr) -> str:
    """The name that attributes, items and calls hang on."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
