"""Images sent as bytes: their floats are made of the whole batch, after it has come to where the model is.

A quarter of the bytes are put into batches, pass from a worker to the program, are page-locked and copied to a GPU.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.batches import Move, NotClear, move_of, moves, quoted, scope_of, target_of
from unstall.optimize.bindings import dotted
from unstall.optimize.case import Area, Case, Exactness, Made, Proposal, Unfit, predicted_without
from unstall.optimize.consumers import loops
from unstall.optimize.late_floats import LateFloats, find
from unstall.optimize.remedies.device_prefetch import AHEAD, of_copies
from unstall.optimize.remedies.loader_workers import main_loader, own_dataset
from unstall.optimize.shares import of_loading, of_sample_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "bytes-to-device"
AREA: Area = "communication"
EXACTNESS: Exactness = "close"
"""Bit for bit on a CPU, where NumPy and torch divide alike; a GPU may multiply by the inverse, and differ by a bit."""

_MIN_SHARE = 0.03
_FEWER = 0.75  # of the bytes: one for each four
_MAKING, _MAKING_ON_GPU = 0.5, 0.95  # of the time to make floats: done for the batch at once, or by the GPU
_MAX_FILES = 2000
FLOATS = "_floats"
DEFINITION = '''def _floats(batch):
    """Samples are sent as whole numbers; their batches become floats here, where the model is."""
    if batch.is_floating_point():
        return batch
    return {EXPRESSION}
'''


def propose(case: Case) -> list[Proposal] | Unfit:
    """The main loader's dataset, if a sample ends by making floats of bytes; told where its batches go is not clear."""
    share = of_floats(case)
    if isinstance(share, Unfit):
        return share
    loader = main_loader(case)
    dataset = own_dataset(case)
    told = _in_transforms(loader, share) if loader is not None else None
    if told is not None:
        return [told]
    if isinstance(dataset, Unfit):
        return dataset
    loader, path = dataset
    try:
        text = case.sources.text(path)
        late = find(text, int(loader["getitem_line"]))
    except (NotClear, SourceError) as error:
        return Unfit(str(error))
    on_gpu = case.measurement.model.device.startswith("cuda")
    making = of_sample_lines(case, path, *late.lines, in_workers=bool(loader["num_workers"]))
    saved = _FEWER * share + (_MAKING_ON_GPU if on_gpu else _MAKING) * making
    where = f"{late.cls} ({path.name}:{late.lines[0]})"
    sources, not_clear = None, ""
    try:
        _check_alone(case, path, late.cls)
        sources = with_late_floats(case.sources, path, late)
    except (NotClear, SourceError) as error:
        not_clear = f"; not written: {error}"
    return [
        Proposal(
            NAME, f"the samples of {where} sent as bytes, {late.applied_to('x')} for the batch", EXACTNESS,
            predicted_without(saved),
            f"collating and copying batches takes {percent(share)} of the step, "
            f"making floats {percent(making)}{not_clear}",
            sources=sources, advice=sources is None, key=where,
        )
    ]  # fmt: skip


def of_floats(case: Case) -> float | Unfit:
    """Share of the step in which batches are put together and copied to a GPU, or why they are not sent anywhere."""
    measured = case.measurement.loader
    if measured is None or not measured.service_s:
        return Unfit("the program iterates no DataLoader")
    if measured.collate not in ("", "default_collate"):
        return Unfit(f"{measured.collate} puts its batches together")
    on_gpu = case.measurement.model.device.startswith("cuda")
    if not on_gpu and not measured.workers:
        return Unfit("the model runs on no GPU, and batches pass through no worker: they are sent nowhere")
    share = of_loading(case) * min(1.0, measured.collate_s / measured.service_s)
    share = min(1.0, share + of_copies(case)) if on_gpu else share
    if share < _MIN_SHARE:
        return Unfit(f"putting batches together and copying them takes {percent(share)} of the step")
    return share


def _in_transforms(loader: Made, share: float) -> Proposal | None:
    """``ToTensor`` at the end of a chain of transforms, with no more than a normalisation after it: told."""
    for attribute, steps in (loader["transforms"] or {}).items():
        types = [step["type"] for step in steps if str(step["module"]).startswith("torchvision.transforms")]
        if types[-1:] == ["ToTensor"] or types[-2:] == ["ToTensor", "Normalize"]:
            late = " and ".join(types[types.index("ToTensor") :])
            return Proposal(
                NAME, f"PILToTensor() for {late} in self.{attribute} of {loader['dataset']}, their arithmetic for the "
                "whole batch", EXACTNESS, predicted_without(_FEWER * share),
                f"collating and copying batches takes {percent(share)} of the step", advice=True,
                key=f"{loader['dataset']}.{attribute}",
            )  # fmt: skip
    return None


# ------------------------------------------------------------------ is it clear who takes the samples?


def _check_alone(case: Case, path: Path, cls: str) -> None:
    """No other file of the program's may take samples of the class. Raises NotClear."""
    name = re.escape(path.stem)
    mention = re.compile(rf"\b{re.escape(cls)}\b|\bimport[^\n#]*\b{name}\b|\bfrom[ .\w]*\b{name}\s+import".encode())
    for number, other in enumerate(_python_files(case.program.root)):
        if number >= _MAX_FILES:
            raise NotClear("too many files may import it")
        if other == path.resolve():
            continue
        try:
            if mention.search(other.read_bytes()):
                raise NotClear(f"{other.name} may take samples of {cls} as well")
        except OSError:
            continue


def _python_files(root: Path) -> Iterator[Path]:
    """The Python files under a folder, without hidden folders and environments."""
    for folder, folders, files in os.walk(root.resolve()):
        folders[:] = [
            one for one in folders
            if not one.startswith(".") and one not in ("node_modules", "site-packages", "__pycache__")
            and not Path(folder, one, "pyvenv.cfg").exists()
        ]  # fmt: skip
        yield from (Path(folder, one) for one in sorted(files) if one.endswith((".py", ".pyw")))


# ------------------------------------------------------------------ writing it


def with_late_floats(sources: Sources, path: Path, late: LateFloats) -> Sources:
    """The sources with floats made of whole batches, in every loop that takes them. Raises NotClear, SourceError."""
    module = sources.parse(path)
    clash = rewrite.clashing(module, (FLOATS, "torch"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    text = sources.text(path)
    tree = ast.parse(text)
    over = loops(tree, late.cls, through=(AHEAD,))
    if not over:
        raise NotClear(f"no loop takes batches of {late.cls}")
    patch = _Patch(text)
    for edit in late.edits:
        if isinstance(edit.node, ast.stmt):
            patch.take_away(edit.node)
        else:
            patch.replace(edit.node, edit.source)
    for loop in over:
        _convert(patch, tree, loop, late)
    try:
        changed = cst.parse_module(patch.text().encode(module.encoding))
    except cst.ParserSyntaxError as error:
        raise SourceError(f"the change to {path.name} is not valid") from error
    definition = DEFINITION.replace("{EXPRESSION}", late.applied_to("batch"))
    changed = rewrite.with_import(rewrite.with_definition(changed, definition), "torch")
    return sources.with_module(path, changed)


def _convert(patch: _Patch, tree: ast.Module, loop: ast.For, late: LateFloats) -> None:
    """Make the floats where the loop copies the part to a device; at the top of its body where it does not."""
    part = _part(loop, late)
    scope = scope_of(tree, loop)
    try:
        move = move_of(scope, loop, late.key)
    except NotClear:
        move = None
    if move is not None:
        patch.around(move.call, f"{FLOATS}(", ")")
        return
    whole = _whole(scope, loop) if late.key is not None else None
    statement = next((one for one in loop.body if whole and any(node is whole.call for node in ast.walk(one))), None)
    if statement is None:
        patch.begin(loop, f"{part} = {FLOATS}({part})")
        return
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if len(targets) == 1 and isinstance(targets[0], (ast.Tuple, ast.List)) and isinstance(late.key, int):
        part = dotted(targets[0].elts[late.key]) if len(targets[0].elts) == late.parts else ""
    elif [dotted(one) for one in targets] != [dotted(target_of(loop))]:
        part = ""
    if not part:
        raise NotClear(f"line {statement.lineno} copies the batch in another way")
    patch.after(statement, f"{part} = {FLOATS}({part})")


def _whole(scope: ast.AST, loop: ast.For) -> Move | None:
    """The copy of the whole batch, if that is how the loop copies it."""
    try:
        return next((move for move in moves(scope, loop) if move.key is None), None)
    except NotClear:
        return None


def _part(loop: ast.For, late: LateFloats) -> str:
    """What the part is called at the top of the loop's body. Raises NotClear."""
    target = target_of(loop)
    if isinstance(target, (ast.Tuple, ast.List)):
        names = [dotted(one) for one in target.elts]
        if isinstance(late.key, int) and len(names) == late.parts and names[late.key]:
            return names[late.key]
    elif isinstance(target, ast.Name):
        return target.id if late.key is None else f"{target.id}[{quoted(late.key)}]"
    raise NotClear(f"line {loop.lineno} takes the batch apart in another way")


class _Patch:
    """Changes to a text at places of its syntax tree: every other character stays."""

    def __init__(self, original: str):
        self.original = original
        lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", original)
        self.lines = lines
        self.starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
        self.newline = "\r\n" if "\r\n" in original else "\n"
        self.edits: list[tuple[int, int, str]] = []

    def replace(self, node: ast.expr, source: str) -> None:
        """Another expression in the place of one."""
        self.edits.append((*self._span(node), source))

    def around(self, node: ast.expr, before: str, after: str) -> None:
        """Something before and after an expression."""
        start, end = self._span(node)
        self.edits += [(start, start, before), (end, end, after)]

    def take_away(self, statement: ast.stmt) -> None:
        """No more of a statement, which must be alone on its lines. Raises NotClear."""
        first, last = self._alone(statement)
        self.edits.append((self.starts[first], self.starts[last] + len(self.lines[last]), ""))

    def after(self, statement: ast.stmt, source: str) -> None:
        """A statement after another. Raises NotClear where that is not alone on its lines."""
        _, last = self._alone(statement)
        self._insert(last, statement.col_offset, source, statement)

    def begin(self, loop: ast.For, source: str) -> None:
        """A statement at the beginning of a loop's body. Raises NotClear for a loop on one line."""
        header, first = (loop.iter.end_lineno or 0) - 1, loop.body[0]
        code = self.lines[header].partition("#")[0].rstrip()
        if first.lineno - 1 <= header or not code.endswith(":"):
            raise NotClear(f"the body of the loop of line {loop.lineno} is beside it")
        self._insert(header, first.col_offset, source, first)

    def text(self) -> str:
        """The text with all the changes."""
        text = self.original
        for start, end, source in sorted(self.edits, reverse=True):
            text = text[:start] + source + text[end:]
        return text

    def _insert(self, line: int, column: int, source: str, beside: ast.stmt) -> None:
        """A line after another, indented as a statement is."""
        indent = self.lines[beside.lineno - 1].encode()[:column].decode()
        end = self.starts[line] + len(self.lines[line])
        ended = self.lines[line].endswith(("\n", "\r"))
        self.edits.append((end, end, f"{'' if ended else self.newline}{indent}{source}{self.newline if ended else ''}"))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends in the text; the tree counts in bytes."""
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def _offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _alone(self, statement: ast.stmt) -> tuple[int, int]:
        """Its first and last line, when it has them to itself."""
        start, end = self._span(statement)
        first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
        before = self.original[self.starts[first] : start]
        after = self.original[end : self.starts[last] + len(self.lines[last])]
        if before.strip() or after.partition("#")[0].strip():
            raise NotClear(f"line {statement.lineno} holds more than one statement")
        return first, last
