"""Where a loop takes its batches from, and which parts of a batch it copies to a device, once and before any other use.

Read from the syntax. A part is a name of the loop's target (``for x, y in loader``), an item of the batch
(``batch["image"]``), or all of it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unstall.optimize.bindings import dotted
from unstall.optimize.purity import names as names_of

_FACTS = ("shape", "ndim", "size", "dim", "numel")
"""Asked of a tensor, these are the same on every device."""
_OPTIONS = {"non_blocking", "memory_format"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Key = int | str


class NotClear(Exception):
    """The source does not tell what becomes of a batch; the message says why."""


@dataclass(frozen=True)
class Move:
    """``x.to(device)`` for a part of the batch."""

    call: ast.Call
    key: Key | None
    """Place or name of the part in the batch; None when it is all of the batch."""
    device: str
    """The device, as the source has it."""


def innermost(tree: ast.Module, line: int) -> ast.For | None:
    """The ``for`` around a line that holds no other around it, in the line's own function."""
    holding = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.For, ast.FunctionDef, ast.Lambda)) and _holds(node, line)
    ]
    last = max(holding, key=lambda node: node.lineno, default=None)
    return last if isinstance(last, ast.For) else None


def source_of(loop: ast.For) -> ast.expr:
    """What the batches come from: the loop's iterable, inside of ``enumerate``."""
    return loop.iter.args[0] if _is_enumerated(loop) else loop.iter  # type: ignore[attr-defined]


def target_of(loop: ast.For) -> ast.expr:
    """What stands for the batch: the loop's target, without the count of ``enumerate``."""
    return loop.target.elts[1] if _is_enumerated(loop) else loop.target  # type: ignore[attr-defined]


def _is_enumerated(loop: ast.For) -> bool:
    call, target = loop.iter, loop.target
    counted = isinstance(call, ast.Call) and ast.unparse(call.func) == "enumerate" and bool(call.args)
    if counted and not (isinstance(target, ast.Tuple) and len(target.elts) == 2):
        raise NotClear("enumerate's count and the batch have one name")
    return counted


def is_plain(source: ast.expr) -> bool:
    """A name, an attribute of one, or a progress bar around it: something that is iterated from its beginning."""
    if (
        isinstance(source, ast.Call)
        and source.args
        and ast.unparse(source.func).rpartition(".")[2] in ("tqdm", "track")
    ):
        source = source.args[0]
    return bool(dotted(source))


def _holds(node: ast.For | ast.FunctionDef | ast.Lambda, line: int) -> bool:
    return node.lineno < line <= (node.end_lineno or 0)


# ------------------------------------------------------------------ the copies to a device


def moves(scope: ast.AST, loop: ast.For) -> list[Move]:
    """The copies of the batch's parts to one device. Raises NotClear when there are none, or more is done with a part.

    ``scope``: the function that the loop is in, or the module.
    """
    target = target_of(loop)
    reading = _Reading(scope, loop)
    if isinstance(target, (ast.Tuple, ast.List)):
        found = reading.of_names(target.elts)
    elif isinstance(target, ast.Name):
        found = reading.of_batch(target.id)
    else:
        raise NotClear("the loop's batch has no name")
    if not found:
        raise NotClear("the loop copies no part of its batch to a device, or not at the top of its body")
    if len({move.device for move in found}) > 1:
        raise NotClear("parts of the batch go to different devices")
    set_here = set(names_of([loop], ast.Store))
    if found[0].device.split(".")[0] in set_here:
        raise NotClear(f"{found[0].device} is set in the loop")
    return found


def move_of(scope: ast.AST, loop: ast.For, key: Key | None) -> Move | None:
    """The copy of one part to a device; None when the part is never copied. Raises NotClear as :func:`moves` does."""
    target = target_of(loop)
    reading = _Reading(scope, loop)
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(key, int) and key < len(target.elts):
        return reading.of_part(target.elts[key], key)
    if isinstance(target, ast.Name):
        return next((move for move in reading.of_batch(target.id) if move.key == key), None)
    raise NotClear("the loop's batch has no such part")


class _Reading:
    """One loop's body, read in the order of the source."""

    def __init__(self, scope: ast.AST, loop: ast.For):
        self.scope = scope
        self.loop = loop
        self.body = [node for statement in loop.body for node in ast.walk(statement)]
        self.parents = {child: node for node in (loop, *self.body) for child in ast.iter_child_nodes(node)}
        self.statements = {node: top for top in loop.body for node in ast.walk(top)}

    def of_names(self, elements: Sequence[ast.expr]) -> list[Move]:
        """The copies of a tuple's names."""
        found = (self.of_part(element, key) for key, element in enumerate(elements))
        return [move for move in found if move is not None]

    def of_part(self, element: ast.expr, key: Key) -> Move | None:
        """The copy of a name; None when it stays where it is."""
        if not isinstance(element, ast.Name):
            return None
        return self._move(self._loads(element.id), key, element.id)

    def of_batch(self, name: str) -> list[Move]:
        """The copies of a batch that has one name: of all of it, or of its items."""
        loads = self._loads(name)
        whole = [move for move in map(self._whole, loads) if move is not None]
        if whole:
            others = [node for node in loads if self.statements[node] is not self.statements[whole[0].call]]
            self._check(others, name, whole[0])
            return whole[:1]
        unpacked = self._unpacked(loads)
        if unpacked is not None:
            return self.of_names(unpacked)
        items: dict[Key, list[ast.expr]] = {}
        for node in loads:
            parent = self.parents[node]
            if not (isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant)):
                raise NotClear(f"{name} is used as a whole")
            if not isinstance(parent.ctx, ast.Load):
                raise NotClear(f"an item of {name} is set")
            items.setdefault(parent.slice.value, []).append(parent)  # type: ignore[arg-type]
        found = (self._move(nodes, key, None) for key, nodes in items.items())
        return [move for move in found if move is not None]

    def _loads(self, name: str) -> list[ast.expr]:
        found = [one for one in self.body if isinstance(one, ast.Name) and one.id == name]
        return sorted((one for one in found if isinstance(one.ctx, ast.Load)), key=lambda one: _start(one))

    def _move(self, loads: Sequence[ast.expr], key: Key, name: str | None) -> Move | None:
        """The one copy among what is done with a part."""
        calls = [(node, call) for node in loads if (call := self._copy(node)) is not None]
        first = calls[0] if calls else None
        if first is None:
            return None
        node, call = first
        device = copied_to(call)
        assert device is not None
        move = Move(call, key, device)
        self._check([one for one in loads if one is not node], name, move)
        return move

    def _copy(self, node: ast.expr) -> ast.Call | None:
        """The call that copies a value to a device."""
        attribute = self.parents[node]
        call = self.parents.get(attribute)
        if isinstance(attribute, ast.Attribute) and isinstance(call, ast.Call) and call.func is attribute:
            return call if copied_to(call) is not None else None
        return None

    def _whole(self, node: ast.expr) -> Move | None:
        """``batch.to(device)``, ``[x.to(device) for x in batch]``, ``{k: x.to(device) for k, x in batch.items()}``."""
        call = self._copy(node)
        if call is not None:
            return Move(call, None, copied_to(call) or "")
        around: ast.AST = self.parents[node]
        if isinstance(around, ast.Attribute) and around.attr == "items":
            around = self.parents[self.parents[around]]
        if not isinstance(around, ast.comprehension):
            return None
        made = self.parents[around]
        if not isinstance(made, (ast.ListComp, ast.GeneratorExp, ast.DictComp)) or len(made.generators) > 1:
            return None
        value = made.value if isinstance(made, ast.DictComp) else made.elt
        device = copied_to(value) if isinstance(value, ast.Call) and not around.ifs else None
        if device is None or dotted(value.func.value) not in names_of([around.target], ast.Store):  # type: ignore
            return None
        return Move(value, None, device)  # type: ignore[arg-type]

    def _unpacked(self, loads: Sequence[ast.expr]) -> Sequence[ast.expr] | None:
        """The names of ``x, y = batch`` at the top of the body, where that is all that the batch is used for."""
        if len(loads) != 1:
            return None
        statement = self.parents[loads[0]]
        if not isinstance(statement, ast.Assign) or statement not in self.loop.body or len(statement.targets) != 1:
            return None
        target = statement.targets[0]
        return target.elts if isinstance(target, (ast.Tuple, ast.List)) else None

    def _check(self, others: Sequence[ast.expr], name: str | None, move: Move) -> None:
        """Nothing else sees the part where it was before. Raises NotClear."""
        statement = self.statements[move.call]
        if not self._is_always_made(move.call, statement, whole=move.key is None):
            raise NotClear(f"line {move.call.lineno} copies under a condition, or in a block")
        end = statement.end_lineno or statement.lineno
        rebound = name is not None and name in names_of([statement], ast.Store)
        for node in others:
            if not self._is_fact(node) and not (rebound and node.lineno > end):
                raise NotClear(f"line {node.lineno} uses a part of the batch where it was before it is copied")
        before = [one for one in self.loop.body if one.lineno < statement.lineno]
        unpacking = [one for one in before if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name)]
        if name in names_of([one for one in before if one not in unpacking], ast.Store):
            raise NotClear(f"{name} is set before it is copied")
        if name is not None and not rebound and self._used_after(name):
            raise NotClear(f"{name} is used after the loop")

    def _is_always_made(self, call: ast.Call, statement: ast.stmt, *, whole: bool) -> bool:
        """Whether each turn of the loop makes a call, once; of a whole batch, once for each of its parts."""
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.AugAssign)):
            return False
        may_not = (ast.IfExp, ast.BoolOp, ast.Lambda, *(() if whole else _COMPREHENSIONS))
        node: ast.AST = call
        while node is not statement:
            node = self.parents[node]
            if isinstance(node, may_not):
                return False
        return True

    def _is_fact(self, node: ast.expr) -> bool:
        """Whether only its shape is asked."""
        parent = self.parents[node]
        if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "len":
            return True
        return isinstance(parent, ast.Attribute) and parent.attr in _FACTS

    def _used_after(self, name: str) -> bool:
        """Whether the next mention of a name after the loop reads it."""
        end = self.loop.end_lineno or 0
        later = [one for one in ast.walk(self.scope) if isinstance(one, ast.Name) and one.id == name]
        first = min((one for one in later if one.lineno > end), key=_start, default=None)
        return first is not None and isinstance(first.ctx, ast.Load)


def copied_to(call: ast.Call) -> str | None:
    """The device of ``x.to(device)`` or ``x.cuda()``, as source; None for a data type, or to something unknown."""
    if not isinstance(call.func, ast.Attribute) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    options = {one.arg: one.value for one in call.keywords}
    given = list(call.args)
    if call.func.attr == "cuda" and set(options) <= {"non_blocking", "device"} and len(given) <= 1:
        where = options.get("device") or (given[0] if given else ast.Constant("cuda"))
        return quoted(where.value) if isinstance(where, ast.Constant) else dotted(where) or None
    if call.func.attr != "to":
        return None
    if "device" in options and not given:
        given = [options.pop("device")]
    if len(given) != 1 or not set(options) <= _OPTIONS:
        return None
    where = given[0]
    if isinstance(where, ast.Constant):
        return quoted(where.value) if str(where.value).startswith("cuda") else None
    name = dotted(where)
    is_device = "device" in name.lower() or name.rpartition(".")[2] in ("gpu", "rank", "local_rank")
    return name if is_device else None


def quoted(value: object) -> str:
    """A number or a text as source, in double quotes."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def scope_of(tree: ast.Module, node: ast.AST) -> ast.AST:
    """The innermost function around a node, or the module."""
    holding = [one for one in _functions(tree) if any(inner is node for inner in ast.walk(one)) and one is not node]
    return max(holding, key=lambda one: one.lineno, default=tree)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
