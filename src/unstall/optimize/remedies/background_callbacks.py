"""Logs, metrics and plots made by a thread while training goes on: in order, a few at most ahead, none lost at exit."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit
from unstall.optimize.deferring import Deferrable, NotDeferrable, examine, function_around
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "background-callbacks"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.05
_REMOVED = 0.9  # of its time: the copy of its arguments stays on the step's path
_STEPS = ("~backward", "~optimizer", "~data.next", "~data.iter", "~env.step")
_WORKER = "_background"
IMPORTS = ("atexit", "copy", "functools", "inspect", "os", "queue", "threading", "torch")
DEFINITIONS = (
    '''def _copied(value):
    """A copy that later changes of the value do not reach: with its gradient, without its history."""
    if isinstance(value, torch.nn.Module):
        twin = copy.deepcopy(value)
        for old, new in zip(value.parameters(), twin.parameters()):
            new.grad = None if old.grad is None else old.grad.detach().clone()
        return twin
    if isinstance(value, torch.Tensor):
        twin = value.detach().clone().requires_grad_(value.requires_grad)
        if value.is_leaf and value.grad is not None:
            twin.grad = value.grad.detach().clone()
        return twin
    if type(value) in (list, tuple):
        return type(value)(_copied(one) for one in value)
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    return copy.deepcopy(value)
''',
    '''class _Background:
    """Makes calls that nobody waits for in a thread: one at a time, in order, and the last before the program ends."""

    def __init__(self, ahead=4):
        self.ahead = ahead
        self.process = self.thread = self.calls = self.error = None
        atexit.register(self.wait)

    def later(self, *shared):
        """A decorator; arguments are copied when the call is made, but for those of these names."""

        def decorator(function):
            signature = inspect.signature(function)

            @functools.wraps(function)
            def call(*args, **kwargs):
                bound = signature.bind(*args, **kwargs)
                if threading.current_thread() is self.thread:
                    return function(*bound.args, **bound.kwargs)
                try:
                    copies = {
                        name: value if name in shared else _copied(value) for name, value in bound.arguments.items()
                    }
                except Exception:  # what cannot be copied is not deferred
                    self.wait()
                    return function(*bound.args, **bound.kwargs)
                bound.arguments.update(copies)
                self.put(function, bound)

            return call

        return decorator

    def put(self, function, bound):
        if self.process != os.getpid():
            self.process, self.calls = os.getpid(), queue.Queue(self.ahead)
            self.thread = threading.Thread(target=self.run, daemon=True, name="background")
            self.thread.start()
        if self.error is not None:
            self.wait()
        self.calls.put((function, bound, torch.is_grad_enabled()))

    def run(self):
        while True:
            function, bound, grad = self.calls.get()
            try:
                if self.error is None:
                    with torch.set_grad_enabled(grad):
                        function(*bound.args, **bound.kwargs)
            except BaseException as error:
                self.error = error
            del function, bound
            self.calls.task_done()

    def wait(self):
        if self.process == os.getpid() and threading.current_thread() is not self.thread:
            self.calls.join()
            error, self.error = self.error, None
            if error is not None:
                raise error

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.wait()
''',
    "_background = _Background()\n",
)


@dataclass(frozen=True)
class Spot:
    """A function that holds up the step, and the lines of the program's that were on the stack above it."""

    path: Path
    name: str
    line: int
    share: float
    callers: tuple[tuple[Path, int], ...]
    """Outermost first."""


def propose(case: Case) -> list[Proposal] | Unfit:
    """The outermost functions that give nothing back and hold up the step, where they may run later."""
    if case.cores < 2:
        return Unfit("there is no other core to make them on")
    reason = "no function that gives nothing back takes a noticeable share"
    found: list[Proposal] = []
    for spot in spots(case):
        try:
            text = case.sources.text(spot.path)
            deferrable = examine(text, spot.name, spot.line)
            sources = with_later_calls(case.sources, spot.path, deferrable, spot.callers)
        except (NotDeferrable, SourceError) as error:
            reason = f"{spot.name} ({spot.path.name}:{spot.line}): {error}"
            continue
        found.append(
            Proposal(
                NAME, f"{spot.name} ({spot.path.name}:{deferrable.first_line}) in a thread", EXACTNESS,
                predict(spot.share), f"it takes {percent(spot.share)} of the step, and nothing waits for what it does",
                sources=sources, key=f"{spot.path.name}:{spot.name}", later=True,
            )
        )  # fmt: skip
        break  # what it calls runs in the thread as well; others come after the next diagnosis
    return found or Unfit(reason)


def predict(share: float) -> float:
    """Speed-up when the main thread and the other one share the step: the longer of the two decides."""
    return 1 / max(1 - _REMOVED * share, share)


def spots(case: Case) -> list[Spot]:
    """The program's own functions that give nothing back and make no step, the largest share of the step first."""
    measured = case.measurement
    stepping = {
        (file, function.rpartition(".")[2])
        for site in measured.sites
        if site.seam.startswith(_STEPS)
        for file, function, _ in ((site.file, site.function, site.line), *site.callers)
    }
    counts: Counter[tuple[Path, str, int]] = Counter()
    callers: dict[tuple[Path, str, int], dict[tuple[Path, int], int]] = {}
    trees: dict[str, tuple[Path, ast.Module] | None] = {}
    total = 0
    for sample in measured.samples:
        if sample.pid != measured.main_pid or not sample.main_thread:
            continue
        total += sample.count
        above: dict[tuple[Path, int], int] = {}
        seen = set()
        for frame in sample.frames:
            if frame.file not in trees:
                trees[frame.file] = _tree(case, frame.file)
            known = trees[frame.file]
            if known is None:
                continue
            path, tree = known
            name = frame.function.rpartition(".")[2]
            function = function_around(tree, name, frame.line)
            if function is not None and (frame.file, name) not in stepping:
                key = (path, name, function.lineno)
                if key not in seen:
                    seen.add(key)
                    counts[key] += sample.count
                    callers.setdefault(key, {}).update(above)
            above.setdefault((path, frame.line), len(above))
    return [
        Spot(path, name, line, count / total, tuple(sorted(held, key=held.__getitem__)))
        for (path, name, line), count in counts.most_common()
        if count / total >= _MIN_SHARE
        for held in (callers[path, name, line],)
    ]


def _tree(case: Case, file: str) -> tuple[Path, ast.Module] | None:
    path = case.user_file(file)
    if path is None:
        return None
    try:
        return path, ast.parse(case.sources.text(path))
    except (SourceError, SyntaxError):
        return None


# ------------------------------------------------------------------ writing it


def with_later_calls(
    sources: Sources, path: Path, deferrable: Deferrable, callers: Sequence[tuple[Path, int]]
) -> Sources:
    """The sources with the function in a thread, and waits where its work must be done. Raises SourceError.

    ``callers``: the lines of the program's that were on the stack above the function, outermost first.
    """
    module = sources.parse(path)
    clash = rewrite.clashing(module, (*IMPORTS, _WORKER, "_Background", "_copied"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    for file, line in callers:
        if file != path and _blocks(rewrite.Found(sources.parse(file)), line):
            raise SourceError(f"{file.name} may clean up before it is done")
    found = rewrite.Found(module)
    lines = [line for file, line in callers if file == path]
    loops = [loop for line in lines for loop in found.nodes_around(line, cst.For, cst.While)]
    if not loops:
        raise SourceError("the loop that calls it is in another file")
    named = {found.place(one.name).start.line: one for one in found.nodes(cst.FunctionDef)}
    if deferrable.first_line not in named:
        raise SourceError(f"{deferrable.name} was not found again")
    writer = _Writer(
        named[deferrable.first_line],
        [named[line] for line in deferrable.waiting if line in named],
        [block for line in lines for block in _blocks(found, line)],
        [loops[0], *_returns(found, loops[0])],
        ", ".join(f'"{name}"' for name in deferrable.shared),
    )
    changed = found.module.visit(writer)
    assert isinstance(changed, cst.Module)
    for definition in reversed(DEFINITIONS):
        changed = rewrite.with_definition(changed, definition)
    for name in IMPORTS:
        changed = rewrite.with_import(changed, name)
    return sources.with_module(path, changed)


def _returns(found: rewrite.Found, loop: cst.CSTNode) -> list[cst.CSTNode]:
    """The lines that leave a loop with its function."""
    lines = [found.parents[one] for one in rewrite.inside(loop) if isinstance(one, cst.Return)]
    if not all(isinstance(one, cst.SimpleStatementLine) for one in lines):
        raise SourceError("the loop that calls it is left by a return beside a condition")
    return lines


def _blocks(found: rewrite.Found, line: int) -> list[cst.CSTNode]:
    """The ``with`` and ``try ... finally`` around a line that may end something that the thread still needs."""
    around = [
        one
        for one in found.nodes_around(line, cst.With, cst.Try)
        if not isinstance(one, cst.With) or not all(_is_mode(item) for item in one.items)
    ]
    return [one for one in around if not isinstance(one, cst.Try) or one.finalbody is not None]


def _is_mode(item: cst.WithItem) -> bool:
    """A context that only sets how torch computes."""
    called = item.item.func if isinstance(item.item, cst.Call) else item.item
    return rewrite.dotted(called).startswith("torch.")


class _Writer(cst.CSTTransformer):
    """Puts the decorator on, and the waits in."""

    def __init__(
        self,
        target: cst.FunctionDef,
        waiting: list[cst.FunctionDef],
        blocks: list[cst.CSTNode],
        exits: list[cst.CSTNode],
        shared: str,
    ):
        super().__init__()
        self.target, self.waiting, self.blocks, self.exits = target, waiting, blocks, exits
        self.decorator = cst.Decorator(cst.parse_expression(f"{_WORKER}.later({shared})"))
        self.wait = cst.parse_statement(f"{_WORKER}.wait()\n")

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if original_node is self.target:
            return updated_node.with_changes(decorators=[self.decorator, *updated_node.decorators])
        if any(original_node is one for one in self.waiting) and isinstance(updated_node.body, cst.IndentedBlock):
            statements = list(updated_node.body.body)
            place = 1 if updated_node.get_docstring() is not None else 0
            body = updated_node.body.with_changes(body=[*statements[:place], self.wait, *statements[place:]])
            return updated_node.with_changes(body=body)
        return updated_node

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        if not any(original_node is one for one in self.blocks):
            return updated_node
        *items, last = updated_node.items
        comma = last.comma
        after = comma if isinstance(comma, cst.Comma) else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        added = cst.WithItem(cst.Name(_WORKER), comma=comma)
        return updated_node.with_changes(items=[*items, last.with_changes(comma=after), added])

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> cst.Try:
        last = updated_node.finalbody
        if not any(original_node is one for one in self.blocks) or last is None:
            return updated_node
        if not isinstance(last.body, cst.IndentedBlock):
            return updated_node
        body = last.body.with_changes(body=[self.wait, *last.body.body])
        return updated_node.with_changes(finalbody=last.with_changes(body=body))

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """A wait after the loop, and before what leaves it; the rest as its own method has it."""
        changed: Any = super().on_leave(original_node, updated_node)
        if not any(original_node is one for one in self.exits):
            return changed
        if isinstance(original_node, cst.SimpleStatementLine):
            first = self.wait.with_changes(leading_lines=changed.leading_lines)
            return cst.FlattenSentinel([first, changed.with_changes(leading_lines=())])
        return cst.FlattenSentinel([changed, self.wait])
