"""Loader workers kept off the cores that the main process computes on, where they contend for them.

Only the workers are tied down: the system then has cores for the main process's threads on which no worker can run.
Tying down the main process as well would tie down all that it starts, and torch would warn of more workers than cores.
"""

from __future__ import annotations

import os
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Made, Proposal, Unfit
from unstall.optimize.remedies.loader_workers import main_loader
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "worker-affinity"
AREA: Area = "compute"
EXACTNESS: Exactness = "exact"

_MIN_DELAY = 0.02  # of the step
_RESTORED = 0.5  # of the delay, assumed: the trial tells
_GPU_THREADS = 2  # that compute in a program whose model is on a GPU: the main thread, and that of the gradients
_PLACE_OF_INIT = 10  # of worker_init_fn among the positional arguments of DataLoader
_NAME = "_leave_cores"
IMPORTS = ("functools", "os")
DEFINITION = f'''def {_NAME}(count, then, worker):
    """Begins a loader worker: leaves the first cores to the main process; then does what the loader did before."""
    cores = sorted(os.sched_getaffinity(0))[count:] if hasattr(os, "sched_getaffinity") else ()
    if cores:
        os.sched_setaffinity(0, cores)
    if then is not None:
        then(worker)
'''


def propose(case: Case) -> list[Proposal] | Unfit:
    """The main loader's workers on the cores beyond the main process's threads, when that waits for a core."""
    loader = main_loader(case)
    measured = case.measurement.loader
    if not hasattr(os, "sched_setaffinity"):
        return Unfit("this system cannot tie a process to cores")
    if loader is None or measured is None or not measured.workers:
        return Unfit("no loader workers are in use")
    if len(case.measurement.ranks) > 1:
        return Unfit("several ranks share the cores: each would leave the others' alone")
    path = case.user_file(loader.call.file) if loader.call else None
    if path is None or loader.call is None:
        return Unfit("the loader is made inside a library")
    own = _threads_of_main(case)
    left = case.cores - own
    if left < 1:
        return Unfit(f"the main process's {own} threads take all {case.cores} cores")
    delay = delay_by_workers(case)
    if delay < _MIN_DELAY:
        return Unfit(f"the main process waits {percent(delay)} of the step for cores that workers are on")
    try:
        sources = with_cores_left(case.sources, path, loader, own)
    except SourceError as error:
        return Unfit(str(error))
    cores = f"{left} core{'s' if left > 1 else ''}"
    return [
        Proposal(
            NAME, f"loader workers on {cores}, {own} left to the main process ({path.name}:{loader.call.line})",
            EXACTNESS, predict(case, delay, left), f"the main process waits {percent(delay)} of the step for a core",
            sources=sources, key=f"{own} and {left}",
        )
    ]  # fmt: skip


def _threads_of_main(case: Case) -> int:
    """Threads of the main process that compute at once."""
    if case.measurement.model.device.startswith("cuda"):
        return _GPU_THREADS
    return max(1, case.measurement.model.threads or case.probe.threads or case.cores)


def delay_by_workers(case: Case) -> float:
    """Share of the step that the main process's threads were ready to run and had no core, as far as by its workers.

    Workers and other programs are taken to keep it waiting in proportion to the cores they use.
    """
    measured = case.measurement
    step = measured.step.mean
    each = measured.team_delay_s / _threads_of_main(case) / step
    workers = measured.worker_cpu_s / step
    others = workers + measured.other_cores
    return min(1.0, max(measured.run_delay or 0.0, each)) * (workers / others if others else 0.0)


def predict(case: Case, delay: float, left: int) -> float:
    """Speed-up of the step: the pipeline law without most of the delay, but with the workers on fewer cores.

    As loader-workers' law: T = max(u, s/W, (a + u)/C), with u the step without the wait for data, s the making of a
    batch, a the part of it that computes. Now u is shorter by what is restored of the delay, and a has ``left`` cores.
    """
    measurement = case.measurement
    loader = measurement.loader
    assert loader is not None
    step = measurement.step.mean
    service = loader.service_s * (loader.batches_per_step or 1.0)
    blocked = min(1.0, loader.service_blocked_s / loader.service_s) if loader.service_s else 0.0
    computing = service * (1 - blocked)
    body = max(0.0, step - measurement.phase_s("data_wait") - loader.start_s)
    before = max(body, service / loader.workers, (computing + body) / case.cores)
    after = max(body - _RESTORED * delay * step, service / loader.workers, computing / left)
    return before / after if after > 0 else 1.0


def with_cores_left(sources: Sources, path: Path, loader: Made, count: int) -> Sources:
    """The sources with a loader's workers off so many cores, whatever they did at their start done as well.

    Raises SourceError where the call that makes the loader cannot be changed.
    """
    assert loader.call is not None
    found = rewrite.Found(sources.parse(path))
    call = found.call(loader.call, _makes_loader)
    if call is None or not _makes_loader(call):
        raise SourceError("the call that makes the loader cannot be found in the source")
    if any(arg.star for arg in call.args) or sum(arg.keyword is None for arg in call.args) > _PLACE_OF_INIT:
        raise SourceError("what the loader's workers do at their start cannot be told from the call that makes it")
    clash = rewrite.clashing(found.module, (*IMPORTS, _NAME))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    present = rewrite.keyword(call, "worker_init_fn")
    then = rewrite.code(found.module, present.value) if present is not None else "None"
    changed = rewrite.with_keyword(call, "worker_init_fn", f"functools.partial({_NAME}, {count}, {then})")
    module = rewrite.with_definition(rewrite.replaced(found.module, call, changed), DEFINITION)
    for name in IMPORTS:
        module = rewrite.with_import(module, name)
    return sources.with_module(path, module)


def _makes_loader(call: cst.Call) -> bool:
    return rewrite.name_of(call).rpartition(".")[2] == "DataLoader"
