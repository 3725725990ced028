"""The number of threads of torch's operators: as many as cores, or fewer where they only get in each other's way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "threads"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""Sums over threads are added in another order."""

_QUEUEING = 0.1  # of the step, spent ready to run without a core
_PARALLEL_SHARE = 0.6  # of the model's time, when it runs on one thread only


def propose(case: Case) -> list[Proposal] | Unfit:
    """Other thread counts than the one in force."""
    if case.measurement.model.device.startswith("cuda"):
        return Unfit("the model runs on a GPU")
    now = case.measurement.model.threads or case.probe.threads or 0
    if not now:
        return Unfit("torch's thread count is not known")
    model = case.share("forward", "backward", "optimizer")
    found = []
    for count in sorted({1, max(1, case.cores // 2), case.cores} - {now}):
        predicted, because = predict(model, now, count, crowded=crowded(case))
        proposal = Proposal(
            NAME, f"{count} thread{'s' if count > 1 else ''} for torch's operators instead of {now}", EXACTNESS,
            predicted, because, runtime={"threads": count}, key=str(count),
        )  # fmt: skip
        found.append(written(case, proposal, count))
    return found or Unfit(f"{now} threads are as many as there are cores")


def crowded(case: Case) -> bool:
    """Whether threads wait for cores: loader workers compute beside the model, or its own threads queue."""
    measured = case.measurement
    workers = measured.loader.workers if measured.loader else 0
    return (
        bool(workers) or measured.team_delay_s > _QUEUEING * measured.step.mean or (measured.run_delay or 0) > _QUEUEING
    )


def predict(model: float, now: int, count: int, *, crowded: bool) -> tuple[float, str]:
    """(predicted speed-up, why): Amdahl with a parallel part for more threads; for fewer, what contention may cost."""
    if count > now:
        left = 1 - model * _PARALLEL_SHARE * (1 - now / count)
        return 1 / left, f"the model takes {percent(model)} of the step, on {now} of {count} possible threads"
    if crowded:
        return 1.06, "its threads and others wait for each other's cores: fewer may be faster"
    return 1.02, "small operators may run better with fewer threads"


def written(case: Case, proposal: Proposal, count: int) -> Proposal:
    """The proposal with the thread count in its source, or at run time where it cannot be written."""
    try:
        sources = _where_set(case, count) or _at_start(case, count)
    except SourceError:
        sources = None
    if sources is None:
        return replace(proposal, settings={"threads": count}, not_written="the script does not import torch itself")
    return replace(proposal, sources=sources)


def _where_set(case: Case, count: int) -> Sources | None:
    """The program sets the count itself: another number there."""
    for made in case.probe.threads_set:
        path = case.user_file(made.call.file) if made.call else None
        if path is None or made.call is None:
            continue
        found = rewrite.Found(case.sources.parse(path))
        call = found.call(made.call, lambda one: rewrite.name_of(one).endswith("set_num_threads"))
        if call is not None and len(call.args) == 1:
            changed = call.with_deep_changes(call.args[0], value=cst.Integer(str(count)))
            return case.sources.with_module(path, rewrite.replaced(found.module, call, changed))
    return None


def _at_start(case: Case, count: int) -> Sources | None:
    """A line after the imports of the script, which must import torch by that name."""
    path = case.program.script
    if path is None or not case.program.owns(path):
        return None
    return with_line_after_imports(case.sources, path, f"torch.set_num_threads({count})")


def with_line_after_imports(sources: Sources, path: Path, line: str) -> Sources | None:
    """The sources with a statement after a file's imports, one blank line around it; None unless it imports torch."""
    module = sources.parse(path)
    if not any(
        isinstance(one, cst.Import) and any(alias.evaluated_name == "torch" and not alias.asname for alias in one.names)
        for statement in module.body
        if isinstance(statement, cst.SimpleStatementLine)
        for one in statement.body
    ):
        return None
    index = rewrite.after_imports(module)
    statement = cst.parse_statement(line + "\n", config=module.config_for_parsing)
    statement = statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    return sources.with_module(path, module.with_changes(body=[*module.body[:index], statement, *module.body[index:]]))
