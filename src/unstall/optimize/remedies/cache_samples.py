"""The part of a sample's making that gives the same every time, kept from one epoch to the next.

Kept in files of the temporary folder, bounded in size, shared by the loader's workers and removed at exit: so that a
JPEG is decoded and resized once, a remote file is fetched once, a table's row is looked up once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import share_of_sample_lines
from unstall.optimize.indexing import batched_getter
from unstall.optimize.observed import ObservedLoader
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import edited, keyword, put, statement
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable, located
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.purity import Steadiness, attributes_read, method_of, names
from unstall.optimize.source.samples import LOAD, unkept_sample_method
from unstall.optimize.source.toplevel import with_runtime
from unstall.optimize.thresholds import CACHED_SAMPLE_SAVES, LEAST_SHARE_OF_ALL
from unstall.text.units import percent


class CacheSamples(Remedy):
    """Keep what the main loader's dataset makes of an index before it draws random numbers."""

    name = "cache-samples"
    brief = (
        "work that is the same in every epoch (decode, resize, fetch, look up) is cached in temporary files of limited "
        "size, removed at exit"
    )
    needs = "your own map-style dataset, whose samples begin with work that no random number changes"
    patterns = ("input-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        loader, path = context.own_dataset()
        context.refuse_one_pass()
        module = context.sources.module(path)
        with located(path.name):
            head = find_head(module, loader.getitem_line or 0)
        if only_indexes(module, loader):
            raise NotApplicable(f"{loader.dataset}.__getitem__ only indexes what is in memory")
        first, last = module.first_line(head.statements[0]), module.last_line(head.statements[-1])
        share = share_of_sample_lines(context, path, first, last, in_workers=bool(loader.num_workers))
        cls = head.cls.name.value
        if share < LEAST_SHARE_OF_ALL:
            raise NotApplicable(f"what stays the same in {cls}.__getitem__ takes only {percent(share)} of the step")
        part = "" if head.is_whole_method else f", its first {last - first + 1} lines"
        return [
            Proposal(
                f"the samples of {cls} ({path.name}:{first}{part}) kept for the next epoch",
                speedup_without(share, CACHED_SAMPLE_SAVES),
                f"making them takes {percent(share)} of the step, and gives the same in every epoch",
                sources=context.sources.with_module(path, with_cache(head)),
                needs_revisits=True,
                key=context.key(path, cls),
                lines=Lines(path, first, last),
            )
        ]


def only_indexes(module: SourceModule, loader: ObservedLoader) -> bool:
    """Whether a sample is only read from memory: to read it back from a file takes longer."""
    try:
        batched_getter(module, loader.getitem_line or 0, loader.attributes)
    except AnalysisRefused:
        return False
    return True


@dataclass(frozen=True)
class Head:
    """The steady statements at the beginning of ``__getitem__``."""

    module: SourceModule
    cls: cst.ClassDef
    init: cst.FunctionDef
    method: cst.FunctionDef
    statements: Sequence[cst.CSTNode]
    """The docstring included."""
    remaining: Sequence[cst.CSTNode]
    keeps: tuple[str, ...]
    """Local names that the rest needs."""

    @property
    def is_whole_method(self) -> bool:
        """Whether it is the whole method."""
        return not self.remaining


def find_head(module: SourceModule, line: int) -> Head:
    """The steady head of the ``__getitem__`` that begins on a line. Raises AnalysisRefused."""
    cls, init, method = _dataset(module, line)
    name = f"{cls.name.value}.__getitem__"
    steadiness = Steadiness(module, cls)
    statements = list(method.body.body)
    count, reason = _steady_count(steadiness, statements)
    head, remaining = statements[:count], statements[count:]
    if not any(isinstance(node, cst.Call) for part in head for node in module.inside(part)):
        raise AnalysisRefused(reason or f"{name} makes nothing before it draws random numbers")
    if remaining and any(isinstance(node, cst.Return) for part in head for node in module.inside(part)):
        raise AnalysisRefused(f"{name} returns from several places")
    unsteady = (steadiness.read_attributes & steadiness.changing_attributes()) - steadiness.set_attributes
    if unsteady:
        raise AnalysisRefused(f"{cls.name.value}.{min(unsteady)} is changed while the program runs")
    if steadiness.set_attributes & attributes_read(module, remaining):
        raise AnalysisRefused(f"the rest of {name} needs what its beginning sets")
    needed = set(names(module, remaining, ExpressionContext.LOAD))
    keeps = tuple(part for part in names(module, head, ExpressionContext.STORE) if part in needed)
    if remaining and not keeps:
        raise AnalysisRefused(f"nothing of what {name} makes first is used later")
    return Head(module, cls, init, method, head, remaining, keeps)


def _dataset(module: SourceModule, line: int) -> tuple[cst.ClassDef, cst.FunctionDef, cst.FunctionDef]:
    """(class, what initialises it, the ``__getitem__`` that begins on a line), where a cache fits in."""
    cls, method = unkept_sample_method(module, line)
    init = method_of(cls, "__init__") or _after_init(module, cls)
    if init is None or not isinstance(init.body, cst.IndentedBlock):
        raise AnalysisRefused(f"{cls.name.value} has no __init__ to make the cache in")
    if not isinstance(method.body, cst.IndentedBlock):
        raise AnalysisRefused(f"{cls.name.value}.__getitem__ stands on a line with its body")
    return cls, init, method


def _after_init(module: SourceModule, cls: cst.ClassDef) -> cst.FunctionDef | None:
    """A dataclass has its ``__init__`` made, which calls ``__post_init__``; None where attributes may not be added."""
    for decorator in cls.decorators:
        made_by, call = decorator.decorator, decorator.decorator
        if isinstance(call, cst.Call):
            made_by = call.func
            if keyword(call, "frozen") is not None or keyword(call, "slots") is not None:
                return None
        if module.name(made_by) == "dataclasses.dataclass":
            return method_of(cls, "__post_init__")
    return None


def _steady_count(steadiness: Steadiness, statements: Sequence[cst.CSTNode]) -> tuple[int, str]:
    """(how many statements at the beginning are steady, why the next one is not)."""
    for count, inner in enumerate(statements):
        set_before, read_before = set(steadiness.set_attributes), set(steadiness.read_attributes)
        try:
            steadiness.check(inner)
        except AnalysisRefused as reason:
            steadiness.set_attributes, steadiness.read_attributes = set_before, read_before
            return count, str(reason)
    return len(statements), ""


def with_cache(head: Head) -> cst.Module:
    """The tree with the head moved into a method of its own, behind a cache. Raises NameTaken."""
    tree, method = head.module.tree, head.method
    index = method.params.params[1].name.value
    get = f"self.samples_kept.get(self.{LOAD}, {index})"
    blank = [cst.EmptyLine(indent=False)]
    if head.is_whole_method:
        load = method.with_changes(name=cst.Name(LOAD))
        front = statement(tree, f"def __getitem__(self, {index}):\n    return {get}\n").with_changes(
            leading_lines=blank
        )
    else:
        values = ", ".join(head.keeps)
        load_body = method.body.with_changes(body=[*head.statements, statement(tree, f"return {values}")])
        load = method.with_changes(name=cst.Name(LOAD), body=load_body)
        front_body = method.body.with_changes(body=[statement(tree, f"{values} = {get}"), *head.remaining])
        front = method.with_changes(body=front_body, leading_lines=blank)
    make = statement(tree, "self.samples_kept = _SampleCache()")
    changed = edited(
        tree,
        {
            method: put(load, front),
            head.init.body: lambda body: body.with_changes(body=[*body.body, make]),
        },
    )
    return with_runtime(changed, "sample_cache")


REMEDY = CacheSamples()
