"""Logs, plots, metrics and checkpoints of every step, made every tenth to hundredth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import libcst as cst

from unstall.child.seams import autograd, modules, optimizer
from unstall.diagnose.program_frames import short
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, first_of
from unstall.optimize.source.bindings import only_names
from unstall.optimize.source.edit import replaced
from unstall.optimize.source.errors import AnalysisRefused, located
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.names import fresh_name
from unstall.optimize.source.toplevel import refuse_taken, with_import, with_statement_after_imports
from unstall.optimize.thresholds import THINNED, THINNED_TO
from unstall.records.observations import Frame
from unstall.records.report import Finding
from unstall.text.units import percent

_COUNTER = "_calls_so_far"
_TRAINING = (modules.FORWARD, autograd.BACKWARD, optimizer.STEP)


class RunLessOften(Remedy):
    """The call that leads to the callback, made every N-th time. What it writes is less: a person has to want that."""

    name = "run-less-often"
    brief = "a log, plot, metric or checkpoint that is made in every step is made every 10th to 100th"
    needs = "a call in your own code that trains nothing and whose result is not used in the loop"
    patterns = ("callback-bound",)
    exactness = "output-changing"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        blamed = [
            finding for finding in context.report.findings if finding.pattern in self.patterns and finding.culprit
        ]
        return [first_of(blamed, lambda finding: _proposal(context, finding), "no callback takes a noticeable share")]


def _proposal(context: RemedyContext, finding: Finding) -> Proposal:
    assert finding.culprit is not None
    share = finding.share or 0.0
    every = next((every for every in THINNED if share / every <= THINNED_TO * (1 - share)), THINNED[-1])
    return first_of(
        _leading_to(context, finding),
        lambda place: _thinned(context, *place, every, share),
        f"no call in your own code leads to {finding.culprit.function} alone",
    )


def _leading_to(context: RemedyContext, finding: Finding) -> list[tuple[Path, int]]:
    """The user's lines that lead to the culprit and to no part of the training, the outermost first."""
    culprit = finding.culprit
    assert culprit is not None
    name, training = culprit.function.rpartition(".")[2], _lines_of_training(context, finding)
    lines: Counter[tuple[str, int]] = Counter()
    depths: dict[tuple[str, int], int] = {}
    for sample in context.measurement.samples:
        if sample.pid != context.measurement.main_pid or not sample.main_thread:
            continue
        leading = _down_to(sample.frames, culprit.file, name)
        for depth, frame in enumerate(leading):
            if (frame.file, frame.line) not in training:
                lines[(frame.file, frame.line)] += sample.count
                depths[(frame.file, frame.line)] = depth
    ordered = sorted(lines, key=lambda place: (depths[place], -lines[place]))
    return [(path, line) for file, line in ordered if (path := context.user_file(file)) is not None]


def _down_to(frames: Sequence[Frame], file: str, name: str) -> Sequence[Frame]:
    """The frames above a function; none where it is not among them."""
    index = next((i for i, frame in enumerate(frames) if frame.file == file and _named(frame) == name), 0)
    return frames[:index]


def _named(frame: Frame) -> str:
    return short(frame.function).rpartition(".")[2]


def _lines_of_training(context: RemedyContext, finding: Finding) -> set[tuple[str, int]]:
    """What leads to the model, its backward pass or its optimizer: (file, line).

    A model that is called without gradients trains nothing: a plot shows what it gives. But validation is left whole.
    """
    is_validation = finding.cause == "validation"
    sites = [
        site
        for site in context.measurement.sites
        if any(seam.covers(site.seam) for seam in _TRAINING) and (site.grad or is_validation)
    ]
    return {place for site in sites for place in
            ((site.file, site.line), *((file, line) for file, _, line in site.callers))}  # fmt: skip


def _thinned(context: RemedyContext, path: Path, line: int, every: int, share: float) -> Proposal:
    """The call on a line, made every so many times."""
    module = context.sources.module(path)
    with located(path.name):
        node = _statement(module, line)
        refuse_taken(module.tree, ["itertools"])
    counter = fresh_name(_COUNTER, {name.value for name in module.all(cst.Name)})
    once = cst.ensure_type(cst.parse_statement(f"if next({counter}) % {every} == 0:\n    pass"), cst.If)
    leading, bare = node.leading_lines, node.with_changes(leading_lines=())
    once = once.with_changes(leading_lines=leading, body=cst.IndentedBlock([bare]))
    tree = replaced(module.tree, node, once)
    tree = with_statement_after_imports(with_import(tree, "itertools"), f"{counter} = itertools.count()")
    first = module.first_line(node)
    return Proposal(
        f"the call in {path.name}:{first} every {every}th time",
        speedup_without(share, 1 - 1 / every),
        f"it takes {percent(share)} of the step",
        sources=context.sources.with_module(path, tree),
        lines=Lines.of(path, module, node),
        key=context.key(path, first),
    )


def _statement(module: SourceModule, line: int) -> cst.SimpleStatementLine | cst.For:
    """The call that stands alone on a line, with the loop that makes nothing but it. Raises AnalysisRefused."""
    node = module.innermost(line, cst.SimpleStatementLine)
    if node is None or module.enclosing(node, cst.FunctionDef, cst.For, cst.While) is None:
        raise AnalysisRefused(f"line {line} is no call in a function or a loop")
    if not _is_call_alone(module, node):
        raise AnalysisRefused(f"line {line}: what it returns is used")
    block = module.parent(node)
    loop = module.parent(block) if block is not None else None
    is_all = isinstance(loop, cst.For) and loop.orelse is None and list(getattr(block, "body", ())) == [node]
    return loop if is_all and isinstance(loop, cst.For) else node


def _is_call_alone(module: SourceModule, node: cst.SimpleStatementLine) -> bool:
    """Whether a line calls something and does nothing else with what that returns, within the loop, than name it."""
    statement = node.body[0]
    if len(node.body) != 1 or not isinstance(statement, (cst.Expr, cst.Assign)):
        return False
    if not isinstance(statement.value, cst.Call) or isinstance(statement, cst.Expr):
        return isinstance(statement.value, cst.Call)
    loop = module.enclosing(node, cst.FunctionDef, cst.For, cst.While)
    if len(statement.targets) != 1 or not isinstance(loop, (cst.For, cst.While)):
        return False
    target = statement.targets[0].target
    names, bound = only_names(target), module.inside(target)
    others = [name for name in module.inside(loop) if isinstance(name, cst.Name) and name not in bound]
    return bool(names) and not any(name.value in names for name in others)


REMEDY = RunLessOften()
