"""What the ranks of one run call it alike, on every node."""

import pytest

from unstall.child.launchers import job


@pytest.mark.parametrize(
    "variables, name",
    [
        ({}, ""),
        ({"MASTER_ADDR": "node0", "MASTER_PORT": "29500"}, "node0-29500"),
        ({"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}, "node0-29500"),
        # With a name of the user's, not by the port: it changes when ranks are started again.
        ({"TORCHELASTIC_RUN_ID": "bert", "MASTER_ADDR": "node0", "MASTER_PORT": "1"}, "bert"),
        ({"SLURM_JOB_ID": "77", "MASTER_ADDR": "node0", "MASTER_PORT": "1"}, "77-node0-1"),
    ],
)
def test_a_run_has_one_name_on_every_node(variables, name):
    assert job(variables) == {"job": name, "restart": 0}


def test_restarts_are_counted():
    assert job({"TORCHELASTIC_RESTART_COUNT": "2"})["restart"] == 2
    assert len(job({"TORCHELASTIC_RUN_ID": "x" * 10_000})["job"]) <= 200
