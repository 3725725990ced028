"""Which rank of how many this process is, by the variables that launchers set. Standard library only.

A process group knows better, where one is made: see :mod:`unstall.child.seams.process_groups`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_VARIABLES = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    ("MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("JAX", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_LOCAL_PROCESS_ID"),
    # Not SLURM_NTASKS: in a batch script it is what was asked for, and one process runs.
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)
"""Launcher, and its variables for rank, world size and local rank; accelerate, DeepSpeed and Ray set torchrun's."""

_LONGEST_JOB = 200  # characters: it becomes a folder's name


def identity(variables: Mapping[str, str] = os.environ) -> dict[str, int | str]:
    """``rank``, ``world_size``, ``local_rank`` and ``launcher``, as far as known; empty where no launcher says."""
    for launcher, *names in _VARIABLES:
        numbers = [_number(variables.get(name)) for name in names]
        known = {
            key: number for key, number in zip(("rank", "world_size", "local_rank"), numbers) if number is not None
        }
        if "rank" in known and "world_size" in known:
            return {**known, "launcher": launcher}
    return _of_lightning(variables)


def _of_lightning(variables: Mapping[str, str]) -> dict[str, int | str]:
    """Lightning's own launcher gives the place on a node alone, which on the first one is the rank."""
    local, world_size = _number(variables.get("LOCAL_RANK")), _number(variables.get("WORLD_SIZE"))
    if local is None or world_size is None or variables.get("NODE_RANK", "0") != "0":
        return {}
    return {"rank": local, "world_size": world_size, "local_rank": local, "launcher": "Lightning"}


def job(variables: Mapping[str, str] = os.environ) -> dict[str, int | str]:
    """``job``: a name that the ranks of one run share on every node, empty where no launcher gives one.

    ``restart``: how often torchrun has started the ranks anew.
    """
    run = variables.get("TORCHELASTIC_RUN_ID", "none")
    address = f"{variables.get('MASTER_ADDR', '')}-{variables.get('MASTER_PORT', '')}".strip("-")
    names = (variables.get("SLURM_JOB_ID", ""), address if run == "none" else run)
    restart = _number(variables.get("TORCHELASTIC_RESTART_COUNT"))
    return {"job": "-".join(name for name in names if name)[:_LONGEST_JOB], "restart": restart or 0}


def own_rank() -> int | None:
    """The rank of this process, as its process group says, where it has one, else its launcher; None for none."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    rank = identity().get("rank")
    return int(rank) if rank is not None else None


def is_first() -> bool:
    """Whether this process is rank 0, or no rank of several."""
    return not identity().get("rank")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
