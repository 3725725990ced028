"""Loader workers and fewer threads for torch's operators at once: neither pays alone where they share the cores.

A team of threads spins between two operators, and waits at each for its slowest member: on the core that a worker
computes on, that is a time slice of the system's. Workers alone slow the model by what they save.
"""

from __future__ import annotations

from dataclasses import replace

from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit
from unstall.optimize.remedies import loader_workers, threads

NAME = "shared-cores"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""Sums over threads are added in another order."""

_AFTER = 0.99  # of what workers alone promise by the same law: those are tried first, their results are the same bits
_OPTIONS = 2


def propose(case: Case) -> list[Proposal] | Unfit:
    """The cores divided between workers and the model's threads."""
    if case.measurement.model.device.startswith("cuda"):
        return Unfit("the model runs on a GPU")
    loader = loader_workers.main_loader(case)
    if loader is None or not loader["map_style"]:
        return Unfit("there is no map-style dataset in the main loop")
    if loader.call is None or case.user_file(loader.call.file) is None:
        return Unfit("the loader is made inside a library")
    team = case.measurement.model.threads or case.probe.threads or 0
    now = int(loader["num_workers"] or 0)
    found = []
    for workers in loader_workers.counts(now, case.cores):
        left = max(1, case.cores - workers)
        if not workers or workers > case.cores or left >= team:
            continue
        predicted = loader_workers.predict(case, workers, now) * _AFTER
        proposal = loader_workers.written(case, loader, workers, predicted)
        if proposal is None or proposal.sources is None:
            continue
        both = replace(
            proposal,
            remedy=NAME,
            exactness=EXACTNESS,
            title=f"{proposal.title} with {left} thread{'s' if left > 1 else ''} for torch's operators",
            because="workers and threads that do not take each other's cores",
            runtime={**proposal.runtime, "threads": left},
            key=f"{workers} and {left}",
        )
        made = threads.written(replace(case, sources=proposal.sources), both, left)
        if not made.settings:  # what one half of cannot be written is no change of the source
            found.append(made)
    found.sort(key=lambda one: -one.predicted)
    return found[:_OPTIONS] or Unfit("workers and threads have cores of their own")
