"""A chain of transforms whose beginning is the same every time: that is kept with the sample, the rest is done anew.

``Compose([Resize, ToFloat, RandomFlip])`` is resized and converted once; the flip is drawn anew in every epoch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Made, Proposal, Unfit, predicted_without
from unstall.optimize.purity import Purity, attributes_read, names
from unstall.optimize.remedies.cache_samples import Head, NotSteady, with_cache
from unstall.optimize.remedies.loader_workers import own_dataset
from unstall.optimize.shares import of_sample_lines
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "split-transforms"
AREA: Area = "memory"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_READ_BACK = 0.1  # of the time to make a sample: reading it back instead, and the transforms that are left
_STEADY_OF_TORCHVISION = {
    "Resize", "CenterCrop", "FiveCrop", "TenCrop", "Pad", "Grayscale", "ToTensor", "PILToTensor", "ToPILImage",
    "ToImage", "ConvertImageDtype", "ToDtype", "ToPureTensor", "RGB", "Normalize", "LinearTransformation",
}  # fmt: skip
DEFINITION = '''def _split(transform):
    """The transforms that give the same every time, up to the first that may not, and a chain of the others."""
    steps = list(getattr(transform, "transforms", ()))
    steady = next((number for number, step in enumerate(steps) if type(step).__qualname__ not in _STEADY), len(steps))
    steady = min(steady, len(steps) - 1)
    if steady < 1:
        return [], transform
    others = copy.copy(transform)
    others.transforms = steps[steady:]
    return steps[:steady], others
'''


@dataclass(frozen=True)
class Chain:
    """Where ``__getitem__`` calls a chain of transforms."""

    cls: str
    attribute: str
    statement: int
    """Number of the statement of the method's body that calls it."""
    sample: str
    """The name that it is given."""
    last_line: int


def propose(case: Case) -> list[Proposal] | Unfit:
    """The chain of transforms of the main loader's dataset."""
    dataset = own_dataset(case)
    if isinstance(dataset, Unfit):
        return dataset
    loader, path = dataset
    line = int(loader["getitem_line"])
    reason = "its dataset calls no chain of transforms"
    for attribute, steps in (loader["transforms"] or {}).items():
        try:
            steady = steady_types(case, steps)
            chain = find_chain(case.sources.text(path), line, attribute)
            share = of_sample_lines(case, path, line, chain.last_line, in_workers=bool(loader["num_workers"]))
            if share < _MIN_SHARE:
                reason = f"making samples up to self.{attribute} takes only {percent(share)} of the step"
                continue
            return [_proposal(case, path, line, chain, steady, share, loader)]
        except (SourceError, NotSteady) as error:
            reason = str(error)
    return Unfit(reason)


def _proposal(
    case: Case, path: Path, line: int, chain: Chain, steady: list[str], share: float, loader: Made
) -> Proposal:
    return Proposal(
        NAME,
        f"{', '.join(steady)} of {chain.cls} ({path.name}:{line}) done once, the rest of self.{chain.attribute} anew",
        EXACTNESS,
        predicted_without(share, 1 - _READ_BACK),
        f"making samples up to there takes {percent(share)} of the step; the first ones give the same in every epoch",
        sources=with_split(case.sources, path, line, chain, steady),
        needs_revisits=True,
        key=f"{path.name}:{chain.cls}.{chain.attribute}",
    )


def steady_types(case: Case, steps: list[dict[str, Any]]) -> list[str]:
    """The names of the types at the beginning of a chain that give the same every time. Raises NotSteady."""
    found = []
    for step in steps[:-1]:
        if not _is_steady(case, step):
            break
        found.append(step["type"])
    if not found:
        raise NotSteady("its first transform may give something else every time, or there is only one")
    return list(dict.fromkeys(found))


def _is_steady(case: Case, step: dict[str, Any]) -> bool:
    if str(step["module"]).startswith("torchvision.transforms"):
        return step["type"] in _STEADY_OF_TORCHVISION
    path = case.user_file(step["file"])
    if path is None:
        return False
    tree = ast.parse(case.sources.text(path))
    return is_steady_call(tree, int(step["line"]))


def is_steady_call(tree: ast.Module, line: int) -> bool:
    """Whether the method that begins on a line gives the same for the same every time, as far as the source tells."""
    for cls in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.lineno == line:
                purity = Purity(tree, cls)
                local = {argument.arg for argument in method.args.args} | set(names(method.body, ast.Store))
                steady = all(purity.is_steady(statement, local) for statement in method.body)
                changing = attributes_read(method.body) & purity.changing_attributes()
                return steady and not purity.written and not changing
    return False


def find_chain(text: str, line: int, attribute: str) -> Chain:
    """The one call of ``self.<attribute>`` in the ``__getitem__`` that begins on a line. Raises NotSteady."""
    tree = ast.parse(text)
    cls, method = next(
        (
            (cls, node)
            for cls in ast.walk(tree)
            if isinstance(cls, ast.ClassDef)
            for node in cls.body
            if isinstance(node, ast.FunctionDef) and node.name == "__getitem__" and node.lineno == line
        ),
        (None, None),
    )
    if cls is None or method is None:
        raise NotSteady("the dataset's __getitem__ was not found in its file")
    defined = {one.name for one in cls.body if isinstance(one, ast.FunctionDef)}
    if "_load_sample" in defined or "__init__" not in defined or len(method.args.args) != 2 or method.decorator_list:
        raise NotSteady(f"{cls.name} keeps its samples already, or is made in another way")
    name = f"self.{attribute}"
    calls = [
        (number, call)
        for number, statement in enumerate(method.body)
        for call in ast.walk(statement)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == name
    ]
    if len(calls) != 1 or len(calls[0][1].args) != 1 or calls[0][1].keywords:
        raise NotSteady(f"{name} is not called once, with one argument, in {cls.name}.__getitem__")
    number, call = calls[0]
    given = call.args[0]
    if not isinstance(given, ast.Name):
        raise NotSteady(f"what {name} is given has no name")
    if not _always(method.body[number], name):
        raise NotSteady(f"{name} is called under a condition")
    purity = Purity(tree, cls)
    local = {argument.arg for argument in method.args.args} | set(names(method.body, ast.Store))
    before = method.body[:number]
    if not all(purity.is_steady(statement, local) for statement in before) or purity.written:
        raise NotSteady(purity.reason or f"{cls.name}.__getitem__ sets {sorted(purity.written)[0]}")
    if any(isinstance(node, ast.Return) for statement in before for node in ast.walk(statement)):
        raise NotSteady(f"{cls.name}.__getitem__ returns from several places")
    changing = (attributes_read(before) | {attribute}) & purity.changing_attributes()
    if changing:
        raise NotSteady(f"{cls.name}.{sorted(changing)[0]} is changed while the program runs")
    last = method.body[number]
    return Chain(cls.name, attribute, number, given.id, last.end_lineno or last.lineno)


def _always(statement: ast.stmt, name: str) -> bool:
    """Whether a statement calls the transforms whenever there are any."""
    if isinstance(statement, (ast.Assign, ast.Return, ast.AnnAssign)):
        return not any(
            isinstance(one, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension)) for one in ast.walk(statement)
        )
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and len(statement.body) == 1
        and ast.unparse(statement.test) in (name, f"{name} is not None")
        and _always(statement.body[0], name)
    )


# ------------------------------------------------------------------ writing it


def with_split(sources: Sources, path: Path, line: int, chain: Chain, steady: list[str]) -> Sources:
    """The sources with the chain split where the dataset is made, and its beginning kept. Raises SourceError."""
    found = rewrite.Found(sources.parse(path))
    config = found.module.config_for_parsing
    clash = rewrite.clashing(found.module, ("copy", "_split", "_STEADY"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    method = found.function("__getitem__", line)
    cls: Any = found.around(method, cst.ClassDef) if method is not None else None
    init = next(
        (one for one in cls.body.body if isinstance(one, cst.FunctionDef) and one.name.value == "__init__"), None
    ) if cls is not None else None  # fmt: skip
    if method is None or init is None or not isinstance(init.body, cst.IndentedBlock):
        raise SourceError(f"{chain.cls}.__getitem__ was not found again")
    apply = cst.parse_statement(
        f"for step in self.steady_steps:\n    {chain.sample} = step({chain.sample})\n", config=config
    )
    split = cst.parse_statement(
        f"self.steady_steps, self.{chain.attribute} = _split(self.{chain.attribute})\n", config=config
    )
    body = list(method.body.body)
    body[chain.statement : chain.statement] = [apply]
    module = found.module.visit(
        _Bodies({method: body, init: [*init.body.body, split]})
    )  # fmt: skip
    assert isinstance(module, cst.Module)
    kept = f"_STEADY = {{{', '.join(f'{chr(34)}{name}{chr(34)}' for name in steady)}}}\n"
    for definition in (DEFINITION, kept):
        module = rewrite.with_definition(module, definition)
    changed = sources.with_module(path, rewrite.with_import(module, "copy"))
    return _kept(changed, path, chain)


def _kept(sources: Sources, path: Path, chain: Chain) -> Sources:
    """The statements up to the beginning of the chain in a method of their own, behind a cache."""
    tree = ast.parse(sources.text(path))
    cls = next(one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and one.name == chain.cls)
    method = next(one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name == "__getitem__")
    count = chain.statement + 1
    needed = set(names(method.body[count:], ast.Load))
    given = method.args.args[1].arg
    keeps = tuple(name for name in names(method.body[:count], ast.Store) if name in needed and name != "step")
    if chain.sample == given:
        raise SourceError(f"{chain.cls}.__getitem__ transforms its index")
    head = Head(chain.cls, count, method.lineno, method.body[count - 1].end_lineno or method.lineno, False, keeps)
    return with_cache(sources, path, head, method.lineno)


class _Bodies(cst.CSTTransformer):
    """Gives functions other bodies."""

    def __init__(self, bodies: dict[cst.FunctionDef, list[Any]]) -> None:
        super().__init__()
        self.bodies = bodies

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        body = self.bodies.get(original_node)
        if body is None:
            return updated_node
        return updated_node.with_changes(body=updated_node.body.with_changes(body=body))
