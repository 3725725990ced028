"""``model.compile()``: torch's compiler fuses small operators; in place, so that checkpoints keep their names."""

from __future__ import annotations

import shutil

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "compiled-model"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""Fused operators round in other places."""

_MIN_SHARE = 0.4
_REMOVED = {"overhead-bound": 0.4, "compute-bound": 0.12}  # of the model's time; the rest is arithmetic that remains

_REMOVED_BY_GRAPHS = {"overhead-bound": 0.6, "sync-bound": 0.2}


def propose(case: Case) -> list[Proposal] | Unfit:
    """Compile the model that the optimizer updates, when the model is what takes the time."""
    share = case.share("forward", "backward")
    if case.measurement.model.compiled:
        return Unfit("the model is compiled")
    if share < _MIN_SHARE:
        return Unfit(f"the model takes {percent(share)} of the step: there is little to compile")
    if not case.measurement.model.device.startswith("cuda") and not (shutil.which("g++") or shutil.which("clang++")):
        return Unfit("torch.compile needs a C++ compiler, and none is installed")
    found = []
    for call, removed in _ways(case):
        written = with_line_after_optimizer(case, f"{{model}}.{call}")
        if written is None:
            return Unfit("the model's name was not found where the optimizer is made")
        sources, place = written
        found.append(
            Proposal(
                NAME, f"model.{call} ({place})", EXACTNESS, predicted_without(share, removed),
                f"the model takes {percent(share)} of the step; compiling takes a while at every start",
                sources=sources, key=call,
            )
        )  # fmt: skip
    return found


def _ways(case: Case) -> list[tuple[str, float]]:
    """(call, the part of the model's time that it removes); on a GPU with CUDA graphs too: one launch, many kernels."""
    pattern = case.report.verdict.pattern
    ways = [("compile()", _REMOVED.get(pattern, 0.05))]
    if case.measurement.model.device.startswith("cuda"):
        ways.append(('compile(mode="reduce-overhead")', _REMOVED_BY_GRAPHS.get(pattern, 0.05)))
    return ways


def with_line_after_optimizer(case: Case, line: str) -> tuple[Sources, str] | None:
    """(sources, place) with a statement about the model, ``{model}`` in it, after its optimizer is made."""
    for made in case.probe.optimizers:
        path = case.user_file(made.call.file) if made.call else None
        if path is None or made.call is None:
            continue
        try:
            found = rewrite.Found(case.sources.parse(path))
            call = found.call(made.call)
            model = _model_of(call) if call is not None else None
            statement = found.statement(call) if call is not None else None
            if model is None or not isinstance(statement, cst.SimpleStatementLine):
                continue
            module = rewrite.with_lines_around(found.module, statement, after=[line.format(model=model) + "\n"])
            return case.sources.with_module(path, module), f"{path.name}:{made.call.line}"
        except SourceError:
            continue
    return None


def _model_of(call: cst.Call) -> str | None:
    """``X`` of the ``X.parameters()`` in an optimizer's arguments."""
    for arg in call.args:
        for node in rewrite.walk(arg.value):
            if isinstance(node, cst.Call) and rewrite.name_of(node).endswith(".parameters"):
                return rewrite.name_of(node).removesuffix(".parameters")
    return None
