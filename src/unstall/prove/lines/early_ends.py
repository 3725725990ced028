"""Changed lines that would leave the training's loop, or an evaluation's, and that no run reached: when is not known.

``break``, ``continue``, ``return``, ``raise`` or ``exit()`` below a condition of the change, inside a loop in which an
optimizer makes its steps, or a model is called that does not learn. And a condition for the step itself, where each
call of the model in training was followed by a step, or for such a loop to go on: it may hold always, or not. A
condition that the original has in the same words is none of the change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from unstall.prove.lines.reached import LoopLines
from unstall.prove.lines.sources import Change
from unstall.prove.lines.syntax import FUNCTIONS, LOOPS, called, reachable, words

_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
_CONDITIONS = (ast.If, ast.IfExp, ast.While)
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)
_YIELDS = (ast.Yield, ast.YieldFrom)
_ENDS = (ast.Return, ast.Break)
_SIMPLE_OR_RETURN = (*_SIMPLE, ast.Return)
_ENDING = frozenset(("takewhile", "iter"))
"""Functions whose result ends on a condition; ``iter`` where it is given one."""
_EXITS = frozenset(("exit", "quit", "_exit", "abort"))

_OF_SIZE = frozenset(("range", "arange", "zeros", "ones", "empty", "full", "rand", "randn"))
"""Functions that are told how long their result is."""

_Lines = frozenset[tuple[str, int]]
"""(file, line) of what is executed in loops."""


def first(
    change: Change,
    reached: frozenset[tuple[str, int]],
    loop_lines: LoopLines,
    *,
    steps_always: bool = False,
) -> str | None:
    """In words, the first of them; None where there is none.

    Args:
        change: of the proof.
        reached: (file, line) of those that a run has reached.
        loop_lines: where training steps and evaluations come from.
        steps_always: whether there are as many steps as calls of models in training.
    """
    in_loops = loop_lines.steps | loop_lines.evaluations
    for source in change.sources:
        path, tree, changed = source.path, source.after, source.lines
        known = _conditions(source.before)
        for statement, loops in sorted(_leaving(tree, known), key=lambda found: found[0].lineno):
            is_missed = statement.lineno in changed and (path, statement.lineno) not in reached
            if is_missed and any(_holds(loop, path, in_loops) for loop in loops):
                trains = any(_holds(loop, path, loop_lines.steps) for loop in loops)
                end = "the training would end or leave steps out" if trains else "an evaluation would leave some out"
                return f"no run reached {source.place(statement.lineno)} ({words(statement)}), where {end}"
        for what, of in (("the training", loop_lines.steps), ("an evaluation", loop_lines.evaluations)):
            for head in [*_heads(tree, known, path, of), *_heads_elsewhere(tree, known, path, of, reached)]:
                if head.lineno in changed:
                    return f"no run ended {what} sooner, which {source.place(head.lineno)} ({words(head)}) may do"
        for guard in _guards(tree, known, path, loop_lines.steps) if steps_always else ():
            if guard.lineno in changed:
                return f"no run left a step out, which {source.place(guard.lineno)} ({words(guard)}) may do"
    return None


def _heads(tree: ast.AST, known: frozenset[str], path: str, in_loops: _Lines) -> Iterator[ast.stmt]:
    """Loops that go on as long as a new condition holds."""
    for loop in ast.walk(tree):
        if not (isinstance(loop, LOOPS) and _holds(loop, path, in_loops)):
            continue
        if isinstance(loop, ast.While):
            condition: ast.expr | None = None if isinstance(loop.test, ast.Constant) else loop.test
        else:
            condition = loop.iter if _ends_on_condition(loop.iter) or _ends_by_number(loop.iter, tree) else None
        if condition is not None and ast.unparse(condition) not in known:
            yield loop


def _heads_elsewhere(
    tree: ast.AST, known: frozenset[str], path: str, in_loops: _Lines, reached: frozenset[tuple[str, int]]
) -> Iterator[ast.stmt]:
    """What gives these loops what they go through, or says how long they do, and may end on a new condition.

    A queue that is worked off ends for one reason, and does so in each run.
    """
    functions = _functions_of(tree)
    loops = [node for node in ast.walk(tree) if isinstance(node, LOOPS) and _holds(node, path, in_loops)]
    heads = [loop.test if isinstance(loop, ast.While) else loop.iter for loop in loops]
    named = {name for head in heads for name in _names(head)}
    for name in sorted(reachable(named, functions, _names)):
        for function in (below for place in functions[name] for below in ast.walk(place)):
            if isinstance(function, FUNCTIONS):
                gives = any(isinstance(below, _YIELDS) for below in ast.walk(function))
                ends = _ENDS if gives or function.name in named else ()
                for statement in ast.walk(function):
                    yield from _endings(statement, ends, known, path, reached)


def _endings(
    statement: ast.AST, ends: tuple[type, ...], known: frozenset[str], path: str, reached: frozenset[tuple[str, int]]
) -> Iterator[ast.stmt]:
    """A statement, or what is in it, that ends what a function gives on a condition that is not known.

    ``ends``: statements that do, beside ``raise StopIteration``.
    """
    if isinstance(statement, ast.If) and ast.unparse(statement.test) not in known:
        for below in (each for each in ast.walk(statement) if isinstance(each, ast.stmt)):
            stops = isinstance(below, ast.Raise) and "StopIteration" in ast.unparse(below)
            if (stops or isinstance(below, ends)) and (path, below.lineno) not in reached:
                yield below
    elif isinstance(statement, ast.While):
        if _goes_on_while_both(statement) and ast.unparse(statement.test) not in known:
            yield statement
    elif isinstance(statement, ast.stmt) and _gives_what_ends(statement) and ast.unparse(statement) not in known:
        yield statement


def _gives_what_ends(statement: ast.AST) -> bool:
    value = statement.value if isinstance(statement, _SIMPLE_OR_RETURN) else None
    return value is not None and _ends_on_condition(value)


def _functions_of(tree: ast.AST) -> Mapping[str, Sequence[ast.stmt]]:
    """Functions and classes of a file by their names."""
    found: dict[str, list[ast.stmt]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
    return found


def _names(node: ast.AST) -> set[str]:
    """Names of what is used in it, and of what is called on something."""
    below = [*ast.walk(node)]
    calls = {called(each) for each in below if isinstance(each, ast.Call)}
    return calls | {each.id for each in below if isinstance(each, ast.Name)}


def _ends_on_condition(iterated: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Call) and called(node) in _ENDING and len(node.args) == 2 for node in ast.walk(iterated)
    )


def _ends_by_number(iterated: ast.expr, tree: ast.AST) -> bool:
    """Whether a loop goes through no more than a number of things, however many there are: those that ``islice`` takes,
    or as many as something has that it goes through beside them and that is of a size of its own.
    """
    calls = [node for node in ast.walk(iterated) if isinstance(node, ast.Call)]
    return any(called(call) == "islice" for call in calls) or any(
        called(call) == "zip"
        and len(call.args) > 1
        and not any(word.arg == "strict" for word in call.keywords)
        and any(_has_size_of_its_own(argument, tree) for argument in call.args)
        for call in calls
    )


def _has_size_of_its_own(node: ast.expr, tree: ast.AST) -> bool:
    """``range(256)``, ``zeros(MOST, 2)``, ``[0] * 256``, or a name of such a thing."""
    value = _assigned(node, tree)
    if isinstance(value, ast.Call) and called(value) in _OF_SIZE:
        first = value.args[0] if value.args else None
        first = first.elts[0] if isinstance(first, ast.Tuple) and first.elts else first
        return first is not None and _is_number(first, tree)
    return isinstance(value, ast.BinOp) and any(_is_number(side, tree) for side in (value.left, value.right))


def _is_number(node: ast.expr, tree: ast.AST) -> bool:
    value = _assigned(node, tree)
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _assigned(node: ast.expr, tree: ast.AST) -> ast.expr:
    """What is last assigned to a name in the file; what is no name is itself."""
    if not isinstance(node, ast.Name):
        return node
    values = [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and any(isinstance(to, ast.Name) and to.id == node.id for to in each.targets)
    ]
    return values[-1] if values else node


def _guards(tree: ast.AST, known: frozenset[str], path: str, step_lines: _Lines) -> Iterator[ast.stmt]:
    """New conditions for a step, inside a loop of the training, or in what is called there: ``if``, ``match``, or one
    within a statement.
    """
    functions = _functions_of(tree)
    loops = [node for node in ast.walk(tree) if isinstance(node, LOOPS) and _holds(node, path, step_lines)]
    inside = reachable(
        {name for loop in loops for statement in loop.body for name in _names(statement)}, functions, _names
    )
    for place in [*loops, *(function for name in sorted(inside) for function in functions[name])]:
        for node in ast.walk(place):
            if isinstance(node, ast.If):
                bodies, is_known = node.body, ast.unparse(node.test) in known
            elif isinstance(node, ast.Match):
                bodies, is_known = [each for case in node.cases for each in case.body], ast.unparse(node) in known
            elif isinstance(node, _SIMPLE):
                bodies, is_known = [node] if _chooses(node) else [], ast.unparse(node) in known
            else:
                continue
            if not is_known and any(_holds(statement, path, step_lines) for statement in bodies):
                yield node


def _chooses(statement: ast.stmt) -> bool:
    """Whether a condition within a statement says what it calls: ``ok and step()``, ``(step if ok else skip)()``."""
    choices = [node for node in ast.walk(statement) if isinstance(node, (ast.BoolOp, ast.IfExp))]
    functions = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(isinstance(below, ast.Call) for choice in choices for below in ast.walk(choice)) or any(
        below in choices for function in functions for below in ast.walk(function)
    )


def _leaving(tree: ast.AST, known: frozenset[str]) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """(statement that leaves, the loops around it in its function), below a condition that is not known."""

    def walk(node: ast.AST, loops: list[ast.stmt], is_new: bool) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
        if isinstance(node, ast.stmt) and is_new and loops and _leaves(node):
            yield node, loops
        if isinstance(node, _SCOPES):
            loops = []
        elif isinstance(node, LOOPS):
            loops = [*loops, node]
        elif isinstance(node, ast.If):
            is_new = is_new or ast.unparse(node.test) not in known
        for child in ast.iter_child_nodes(node):
            yield from walk(child, loops, is_new)

    yield from walk(tree, [], False)


def _goes_on_while_both(loop: ast.While) -> bool:
    """Whether it gives on what it goes through, as long as one thing holds and another."""
    gives = any(isinstance(below, _YIELDS) for below in ast.walk(loop))
    return gives and isinstance(loop.test, ast.BoolOp) and isinstance(loop.test.op, ast.And)


def _leaves(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return called(statement.value) in _EXITS
    return isinstance(statement, _LEAVES)


def _conditions(tree: ast.AST) -> frozenset[str]:
    """In the words of the original: conditions, what loops go through, and statements with a condition of their own."""
    known = set()
    for node in ast.walk(tree):
        if isinstance(node, _CONDITIONS):
            known.add(ast.unparse(node.test))
        if isinstance(node, (ast.For, ast.AsyncFor)):
            known.add(ast.unparse(node.iter))
        if isinstance(node, ast.Match) or (isinstance(node, _SIMPLE) and _chooses(node)):
            known.add(ast.unparse(node))
        if _gives_what_ends(node):
            known.add(ast.unparse(node))
    return frozenset(known)


def _holds(statement: ast.stmt, path: str, lines: _Lines) -> bool:
    """Whether these are within a statement; of a loop, in its body."""
    first = statement.body[0].lineno if isinstance(statement, LOOPS) else statement.lineno
    last = statement.end_lineno or statement.lineno
    return any(file == path and first <= line <= last for file, line in lines)
