"""The part of a sample's making that gives the same every time, kept from one epoch to the next.

Kept in files of the temporary folder, bounded in size, shared by the loader's workers and removed at exit: so that a
JPEG is decoded and resized once, a remote file is fetched once, a table's row is looked up once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.purity import Purity, attributes_read, names
from unstall.optimize.remedies.loader_workers import own_dataset
from unstall.optimize.shares import of_sample_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "cache-samples"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_READ_BACK = 0.06  # of the time to make a sample: reading it back from the page cache instead
_MIN_SHARE = 0.03
CACHE = "_SampleCache"
IMPORTS = ("os", "pickle", "shutil", "tempfile", "torch", "weakref")
DEFINITIONS = (
    '''class _SamplePickler(pickle.Pickler):
    """Writes plain tensors as arrays: ten times as fast as torch's own way."""

    def reducer_override(self, value):
        plain = type(value) is torch.Tensor and value.layout is torch.strided and value.device.type == "cpu"
        if plain and not value.requires_grad and value.dtype is not torch.bfloat16:
            return torch.from_numpy, (value.resolve_conj().resolve_neg().numpy(),)
        return NotImplemented
''',
    '''class _SampleCache:
    """Loaded samples, kept in files for the next epoch and shared by the loader's workers.

    It leaves half of the disk space that was free untouched, and removes its files at exit.
    """

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="samples-")
        self.reserve = shutil.disk_usage(self.folder).free // 2
        weakref.finalize(self, self.remove, self.folder, os.getpid())

    @staticmethod
    def remove(folder, owner):
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    def get(self, load, index):
        path = os.path.join(self.folder, repr(index).encode().hex())
        try:
            with open(path, "rb", buffering=0) as file:
                return pickle.loads(file.readall())
        except FileNotFoundError:
            sample = load(index)
        if shutil.disk_usage(self.folder).free > self.reserve:
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                _SamplePickler(file, pickle.HIGHEST_PROTOCOL).dump(sample)
            os.replace(file.name, path)
        return sample
''',
)


@dataclass(frozen=True)
class Head:
    """The steady statements at the beginning of ``__getitem__``."""

    cls: str
    count: int
    """Statements, the docstring included."""
    first_line: int
    last_line: int
    whole: bool
    """It is the whole method."""
    keeps: tuple[str, ...]
    """Local names that the rest needs."""


def propose(case: Case) -> list[Proposal] | Unfit:
    """Keep the steady head of the main loader's dataset."""
    dataset = own_dataset(case)
    if isinstance(dataset, Unfit):
        return dataset
    loader, path = dataset
    try:
        text = case.sources.text(path)
        head = find_head(text, int(loader["getitem_line"]))
    except (SourceError, NotSteady) as error:
        return Unfit(str(error))
    share = of_sample_lines(case, path, head.first_line, head.last_line, in_workers=bool(loader["num_workers"]))
    if share < _MIN_SHARE:
        return Unfit(f"what stays the same in {head.cls}.__getitem__ takes only {percent(share)} of the step")
    try:
        sources = with_cache(case.sources, path, head, int(loader["getitem_line"]))
    except SourceError as error:
        return Unfit(str(error))
    part = "" if head.whole else f", its first {head.last_line - head.first_line + 1} lines"
    return [
        Proposal(
            NAME, f"the samples of {head.cls} ({path.name}:{head.first_line}{part}) kept for the next epoch", EXACTNESS,
            predicted_without(share, 1 - _READ_BACK),
            f"making them takes {percent(share)} of the step, and gives the same in every epoch",
            sources=sources, needs_revisits=True, key=f"{path.name}:{head.cls}",
        )
    ]  # fmt: skip


class NotSteady(Exception):
    """Nothing at the beginning of ``__getitem__`` is the same every time; the message says why."""


def find_head(text: str, line: int) -> Head:
    """The steady head of the ``__getitem__`` that begins on a line. Raises NotSteady."""
    tree = ast.parse(text)
    cls, method = _method(tree, line)
    if any(isinstance(node, ast.FunctionDef) and node.name == "_load_sample" for node in cls.body):
        raise NotSteady(f"{cls.name} keeps its samples already")
    if not any(isinstance(node, ast.FunctionDef) and node.name == "__init__" for node in cls.body):
        raise NotSteady(f"{cls.name} has no __init__ to make the cache in")
    if method.decorator_list or len(method.args.args) != 2 or method.args.vararg or method.args.kwarg:
        raise NotSteady(f"{cls.name}.__getitem__ takes more than an index")
    purity = Purity(tree, cls)
    local = {argument.arg for argument in method.args.args} | set(names(method.body, ast.Store))
    count = 0
    for statement in method.body:
        if not purity.is_steady(statement, local):
            break
        count += 1
    whole = count == len(method.body)
    if not whole and any(isinstance(node, ast.Return) for one in method.body[:count] for node in ast.walk(one)):
        raise NotSteady(f"{cls.name}.__getitem__ returns from several places")
    head, rest = method.body[:count], method.body[count:]
    if not _does_something(head):
        raise NotSteady(purity.reason or f"{cls.name}.__getitem__ makes nothing before it draws random numbers")
    unsteady = (attributes_read(head) & purity.changing_attributes()) - purity.written
    if unsteady:
        raise NotSteady(f"{cls.name}.{sorted(unsteady)[0]} is changed while the program runs")
    if purity.written & attributes_read(rest):
        raise NotSteady(f"the rest of {cls.name}.__getitem__ needs what its beginning sets")
    needed = set(names(rest, ast.Load))
    keeps = tuple(name for name in names(head, ast.Store) if name in needed)
    if not whole and not keeps:
        raise NotSteady(f"nothing of what {cls.name}.__getitem__ makes first is used later")
    return Head(cls.name, count, head[0].lineno, head[-1].end_lineno or head[-1].lineno, whole, keeps)


def _method(tree: ast.Module, line: int) -> tuple[ast.ClassDef, ast.FunctionDef]:
    for cls in ast.walk(tree):
        if isinstance(cls, ast.ClassDef):
            for node in cls.body:
                if isinstance(node, ast.FunctionDef) and node.name == "__getitem__" and node.lineno == line:
                    return cls, node
    raise NotSteady("the dataset's __getitem__ was not found in its file")


def _does_something(head: list[ast.stmt]) -> bool:
    """A head that only looks up and counts is not worth keeping."""
    return any(isinstance(node, ast.Call) for statement in head for node in ast.walk(statement))


# ------------------------------------------------------------------ writing it


def with_cache(sources: Sources, path: Path, head: Head, line: int) -> Sources:
    """The sources with the head moved into a method of its own, behind a cache. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    method = found.function("__getitem__", line)
    cls: Any = found.around(method, cst.ClassDef) if method is not None else None
    if method is None or cls is None or cls.name.value != head.cls:
        raise SourceError(f"{head.cls}.__getitem__ was not found again")
    config = found.module.config_for_parsing
    index = method.params.params[1].name.value
    got = f"self.samples_kept.get(self._load_sample, {index})"
    body = list(method.body.body)
    if head.whole:
        load = method.with_changes(name=cst.Name("_load_sample"))
        text = f"def __getitem__(self, {index}):\n    return {got}\n"
        front = cst.parse_statement(text, config=config).with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    else:
        kept = ", ".join(head.keeps)
        back = cst.parse_statement(f"return {kept}\n", config=config)
        fetch = cst.parse_statement(f"{kept} = {got}\n", config=config)
        load_body = method.body.with_changes(body=[*body[: head.count], back])
        load = method.with_changes(name=cst.Name("_load_sample"), body=load_body)
        front_body = method.body.with_changes(body=[fetch, *body[head.count :]])
        front = method.with_changes(body=front_body, leading_lines=[cst.EmptyLine(indent=False)])
    module = rewrite.replaced(found.module, method, cst.FlattenSentinel([load, front]))
    module = _with_cache_made(module, head.cls)
    for definition in reversed(DEFINITIONS):
        module = rewrite.with_definition(module, definition)
    for name in IMPORTS:
        module = rewrite.with_import(module, name)
    return sources.with_module(path, module)


def _with_cache_made(module: cst.Module, cls: str) -> cst.Module:
    """``self.samples_kept = _SampleCache()`` at the end of the class's ``__init__``."""
    found = rewrite.Found(module)
    for init in found.nodes(cst.FunctionDef):
        holder = found.around(init, cst.ClassDef)
        if init.name.value == "__init__" and isinstance(holder, cst.ClassDef) and holder.name.value == cls:
            line = cst.parse_statement(f"self.samples_kept = {CACHE}()\n", config=module.config_for_parsing)
            body: Any = init.body
            if not isinstance(body, cst.IndentedBlock):
                break
            return rewrite.replaced(module, body, body.with_changes(body=[*body.body, line]))
    raise SourceError(f"{cls} has no __init__ to make the cache in")
