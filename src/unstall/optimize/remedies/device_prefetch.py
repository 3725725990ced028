"""The next batch copied to the GPU on a stream of its own while the step computes: copy and step at the same time.

Page-locked batches are copied by the GPU's own copy engine, so this pins the loader's batches as ``async-copies`` does,
and goes further: there a copy is not waited for by the program, but the GPU still makes it before the step's work.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.batches import NotClear, innermost, is_plain, moves, quoted, scope_of, source_of
from unstall.optimize.case import Area, Case, Exactness, Made, Proposal, Unfit
from unstall.optimize.remedies.loader_workers import main_loader, with_keywords
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "device-prefetch"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"
"""The same numbers, in the same order; only when they are copied differs."""

_MIN_SHARE = 0.03
_HIDDEN = 0.9  # of the copies: the first of an epoch has no step to hide behind
AHEAD = "_ahead"
DEFINITION = '''def _ahead(batches, device, parts=None):
    """The batches with these parts (None: all) on a GPU: each is copied there while the step before it computes."""
    device = torch.device(device)
    if device.type != "cuda":
        yield from batches
        return
    batches = iter(batches)
    stream = torch.cuda.Stream(device)
    copies = []

    def copied(key, value):
        if not isinstance(value, torch.Tensor) or (parts is not None and key not in parts):
            return value
        copies.append(value.to(device, non_blocking=True))
        return copies[-1]

    def fetch():
        batch = next(batches)
        with torch.cuda.stream(stream):
            if type(batch) is dict:
                return {key: copied(key, value) for key, value in batch.items()}
            if type(batch) in (list, tuple):
                return type(batch)(copied(key, value) for key, value in enumerate(batch))
            return copied(None, batch) if parts is None else batch

    try:
        following = fetch()
    except StopIteration:
        return
    failure = None
    while failure is None:
        batch = following
        current = torch.cuda.current_stream(device)
        current.wait_stream(stream)  # for this batch, not for the next one
        for value in copies:
            value.record_stream(current)
        copies.clear()
        try:
            following = fetch()
        except Exception as error:  # it is raised when its turn comes
            failure = error
        yield batch
    if not isinstance(failure, StopIteration):
        raise failure
'''


@dataclass(frozen=True)
class Loop:
    """A loop whose batches can be copied ahead."""

    path: Path
    line: int
    number: int
    """Of the ``for`` loops in its file: what stays the same when lines move."""
    arguments: str
    """After the batches, in the call that copies ahead."""


def propose(case: Case) -> list[Proposal] | Unfit:
    """The loops over the main loader's kind whose batches go to the GPU at the top of the step."""
    if not case.measurement.model.device.startswith("cuda"):
        return Unfit("the model runs on no GPU")
    share = of_copies(case)
    if share < _MIN_SHARE:
        return Unfit(f"copies to the device take {percent(share)} of the step")
    loader = main_loader(case)
    if loader is None:
        return Unfit("the program iterates no DataLoader")
    if not loader["num_workers"]:
        return Unfit("the loop makes its batches itself: to make one ahead would hold up the step")
    try:
        loops = find(case)
        pinned = _pinned(case, loader)
        sources = with_ahead(pinned, loops)
    except (NotClear, SourceError) as error:
        return Unfit(str(error))
    where = ", ".join(f"{one.path.name}:{one.line}" for one in loops)
    pinning = "" if loader["pin_memory"] else ", pin_memory=True"
    return [
        Proposal(
            NAME, f"the next batch copied to the GPU during the step ({where}{pinning})", EXACTNESS,
            predict(share), f"copies to the device take {percent(share)} of the step, and need not wait for it",
            sources=sources, key=where,
        )
    ]  # fmt: skip


def of_copies(case: Case) -> float:
    """Share of the step: what the program waits for copies, or the GPU copies and computes nothing, the larger."""
    trace = case.report.trace
    on_device = trace.device.get("copies", 0.0) if trace is not None else 0.0
    return max(case.share("transfer"), on_device)


def predict(share: float) -> float:
    """Speed-up when copies and the rest of the step go on at the same time: the longer of the two decides."""
    return 1 / max(1 - _HIDDEN * share, share)


def find(case: Case) -> list[Loop]:
    """The loops that iterate a loader and copy its batches. Raises NotClear when there are none, SourceError."""
    found: dict[tuple[Path, int], Loop] = {}
    reason = "no copy of a batch to the device was found in the program's own loops"
    for site in case.measurement.sites:
        path = case.user_file(site.file)
        if path is None or not site.seam.startswith("~transfer."):
            continue
        iterated = {one.line for one in case.measurement.sites
                    if one.seam == "~data.iter" and case.user_file(one.file) == path}  # fmt: skip
        try:
            loop = loop_at(case.sources.text(path), path, site.line, iterated)
        except NotClear as error:
            reason = str(error)
        else:
            found.setdefault((path, loop.number), loop)
    if not found:
        raise NotClear(reason)
    return list(found.values())


def loop_at(text: str, path: Path, line: int, iterated: set[int]) -> Loop:
    """The loop around a line, if it begins a loader's iteration (on one of these lines). Raises NotClear."""
    tree = ast.parse(text)
    loop = innermost(tree, line)
    if loop is None:
        raise NotClear(f"{path.name}:{line} copies to the device outside of a loop")
    source = source_of(loop)
    if isinstance(source, ast.Call) and ast.unparse(source.func) == AHEAD:
        raise NotClear(f"{path.name}:{loop.lineno} copies its batches ahead already")
    if not iterated & set(range(loop.lineno, loop.body[0].lineno)) or not is_plain(source):
        raise NotClear(f"{path.name}:{loop.lineno} goes over something else than a DataLoader")
    found = moves(scope_of(tree, loop), loop)
    parts = ", ".join(quoted(move.key) for move in found)
    comma = "," if len(found) == 1 else ""
    given = "" if any(move.key is None for move in found) else f", ({parts}{comma})"
    loops = sorted((one for one in ast.walk(tree) if isinstance(one, (ast.For, ast.AsyncFor))), key=_start)
    return Loop(path, loop.lineno, loops.index(loop), f"{found[0].device}{given}")


def _start(loop: ast.For | ast.AsyncFor) -> tuple[int, int]:
    return loop.lineno, loop.col_offset


def _pinned(case: Case, loader: Made) -> Sources:
    """The sources with page-locked batches. Raises SourceError where the loader's call cannot be changed."""
    if loader["pin_memory"]:
        return case.sources
    if loader.call is None or case.user_file(loader.call.file) is None:
        raise SourceError("the loader is not made in the program's own code, and its batches are not page-locked")
    changed = with_keywords(case, loader, {"pin_memory": "True"}, title="", predicted=1.0, because="")
    if changed is None or changed.sources is None:
        raise SourceError("the call that makes the loader cannot be found in the source")
    return changed.sources


# ------------------------------------------------------------------ writing it


def with_ahead(sources: Sources, loops: list[Loop]) -> Sources:
    """The sources with these loops over batches that are copied ahead. Raises SourceError."""
    files: dict[Path, dict[int, str]] = {}
    for loop in loops:
        files.setdefault(loop.path, {})[loop.number] = loop.arguments
    for path, numbers in files.items():
        found = rewrite.Found(sources.parse(path))
        clash = rewrite.clashing(found.module, (AHEAD, "torch"))
        if clash:
            raise SourceError(f"{path.name} uses the name {clash} for something else")
        nodes = found.nodes(cst.For)
        changed = found.module.visit(_Ahead({nodes[number]: given for number, given in numbers.items()}))
        changed = rewrite.with_import(rewrite.with_definition(changed, DEFINITION), "torch")
        sources = sources.with_module(path, changed)
    return sources


class _Ahead(cst.CSTTransformer):
    """Puts the call around what some loops go over, inside of ``enumerate``."""

    def __init__(self, loops: Mapping[cst.CSTNode, str]) -> None:
        super().__init__()
        self.loops = loops

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        given = self.loops.get(original_node)
        if given is None:
            return updated_node
        over = updated_node.iter
        if isinstance(over, cst.Call) and rewrite.name_of(over) == "enumerate":
            first, *others = over.args
            first = first.with_changes(value=_call(first.value, given))
            return updated_node.with_changes(iter=over.with_changes(args=[first, *others]))
        return updated_node.with_changes(iter=_call(over, given))


def _call(batches: cst.BaseExpression, given: str) -> cst.Call:
    call = cst.parse_expression(f"{AHEAD}(batches, {given})")
    assert isinstance(call, cst.Call)
    first, *others = call.args
    return call.with_changes(args=[first.with_changes(value=batches), *others])
