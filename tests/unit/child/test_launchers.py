"""Which rank a process is, by the variables of its launcher."""

from __future__ import annotations

import pytest

from unstall.child import launchers

VARIABLES = {
    "torchrun": {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"},
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
    "MVAPICH": {"MV2_COMM_WORLD_RANK": "3", "MV2_COMM_WORLD_SIZE": "4", "MV2_COMM_WORLD_LOCAL_RANK": "1"},
    "MPI": {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"},
    "JAX": {"JAX_PROCESS_ID": "3", "JAX_NUM_PROCESSES": "4", "JAX_LOCAL_PROCESS_ID": "1"},
    "Slurm": {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1"},
}


@pytest.mark.parametrize("launcher", VARIABLES)
def test_each_launcher_has_its_variables(launcher):
    assert launchers.identity(VARIABLES[launcher]) == {
        "rank": 3,
        "world_size": 4,
        "local_rank": 1,
        "launcher": launcher,
    }


def test_torchrun_within_slurm_is_torchruns():
    both = {**VARIABLES["Slurm"], "RANK": "7", "WORLD_SIZE": "8"}
    assert launchers.identity(both) == {"rank": 7, "world_size": 8, "launcher": "torchrun"}


def test_lightning_numbers_the_processes_of_a_node():
    first_node = {"LOCAL_RANK": "1", "WORLD_SIZE": "2", "NODE_RANK": "0"}
    assert launchers.identity(first_node)["rank"] == 1
    assert launchers.identity({**first_node, "NODE_RANK": "1"}) == {}


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "0"},  # of how many is not known
        {"RANK": "first", "WORLD_SIZE": "2"},
        {"RANK": "", "WORLD_SIZE": "2"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"},  # a batch script: one process, whatever was asked for
    ],
)
def test_otherwise_it_is_not_known(variables):
    assert launchers.identity(variables) == {}
