"""Programs of several ranks, by the launchers that there are: who is late, and what a run that sees one node can say."""

import importlib.util
import json
import sys

import pytest
from harness import free_port
from nodes import ADDRESS, NotPossible, two_nodes

pytestmark = pytest.mark.slow

# One rank is late by so much that no load of the machine hides it.
TRAINING = """
    import os
    import sys
    import time

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel


    def fetch_slowly():
        time.sleep(0.15)


    def train(rank):
        torch.set_num_threads(1)
        model = DistributedDataParallel(nn.Linear(32, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(40):
            if rank == 1:
                fetch_slowly()
            loss = model(torch.randn(16, 32)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        dist.barrier()
        dist.destroy_process_group()
        # A gloo thread that still holds a tensor aborts once the interpreter ends, one time in 40 (torch#179291).
        time.sleep(0.5)
"""

TORCHRUN = f"""{TRAINING}

    dist.init_process_group("gloo")
    train(dist.get_rank())
"""

SPAWN = f"""{TRAINING}

    def rank_main(rank, port):
        address = f"tcp://127.0.0.1:{{port}}"
        dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
        train(rank)


    if __name__ == "__main__":
        torch.multiprocessing.spawn(rank_main, (sys.argv[1],), nprocs=2)
"""

ACCELERATE = """
    import time

    import torch
    from accelerate import Accelerator
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    def fetch_slowly():
        time.sleep(0.15)


    accelerator = Accelerator(cpu=True)
    torch.set_num_threads(1)
    model = nn.Linear(32, 4)
    data = DataLoader(TensorDataset(torch.randn(640, 32)), batch_size=8)
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), data)
    for (batch,) in data:
        if accelerator.process_index == 1:
            fetch_slowly()
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.end_training()
    time.sleep(0.5)
"""

LIGHTNING = """
    import time

    import lightning
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(32, 4)

        def training_step(self, batch):
            if self.global_rank == 1:
                self.fetch_slowly()
            return self.layer(batch[0]).square().mean()

        def fetch_slowly(self):
            time.sleep(0.15)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)


    if __name__ == "__main__":
        torch.set_num_threads(1)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", devices=2, strategy="ddp", **quiet)
        trainer.fit(Model(), DataLoader(TensorDataset(torch.randn(640, 32)), batch_size=8))
        time.sleep(0.5)
"""

FSDP = """
    import time

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard


    def fetch_slowly():
        time.sleep(0.3)


    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    shards = dist.new_group([0, 1], group_desc="mesh_shard")  # as a mesh describes the group of its dimension
    mesh = DeviceMesh.from_group(shards, "cpu", mesh_dim_names=("shard",))
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        if dist.get_rank() == 1:
            fetch_slowly()
        loss = model(torch.randn(16, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()
    time.sleep(0.5)
"""


def check_straggler(watched):
    """Rank 1 is late, in the function where that was planted, and rank 0 waits for it."""
    assert watched.status == 0, watched.err
    report = watched.report
    assert report["run"]["world_size"] == 2
    verdict = report["verdict"]
    assert verdict["pattern"] == "straggler", verdict
    assert (verdict["culprit"]["process"], verdict["culprit"]["index"]) == ("rank", 1)
    assert "fetch_slowly" in verdict["culprit"]["function"]
    communication = report["communication"]
    assert [rank["rank"] for rank in communication["ranks"]] == [0, 1]
    assert communication["waits_least"] == 1
    waits = [rank["exposed_s"] for rank in communication["ranks"]]
    assert waits[0] > waits[1]
    return communication


def needs(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


def test_torchrun(workspace):
    workspace.write("train.py", TORCHRUN)
    watched = workspace.watched("--", "torchrun", "--standalone", "--nproc-per-node", "2", "train.py")
    communication = check_straggler(watched)
    # What torch logs of DDP's exchange: one bucket with a layer of 32 by 4, hardly any of which so short a backward hides.
    inside = [group for rank in communication["ranks"] for group in rank["groups"] if group["name"] == "in backward"]
    assert [(group["calls_per_step"], group["bytes_per_step"]) for group in inside] == [(1, 4 * (32 * 4 + 4))] * 2
    assert all(0 <= group["hidden_s"] < 0.15 for group in inside)
    assert 0 < communication["efficiency"] < 0.75  # rank 0 waits for most of a step
    assert "scaling efficiency" in watched.err


def test_processes_that_torch_spawns(workspace):
    workspace.write("train.py", SPAWN)
    check_straggler(workspace.watched("train.py", free_port()))


@pytest.mark.long
@needs("accelerate")
def test_accelerate(workspace):
    workspace.write("train.py", ACCELERATE)
    # Its launcher for several processes on a machine; the program asks for the CPU.
    options = ["--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"]
    options += ["--dynamo_backend", "no", "--main_process_port", free_port()]
    check_straggler(workspace.watched("--", "accelerate", "launch", *options, "train.py"))


@pytest.mark.long
@needs("lightning")
def test_lightnings_own_launcher(workspace):
    workspace.write("train.py", LIGHTNING)
    check_straggler(workspace.watched("train.py"))


def test_fsdp2_waits_in_forward_for_the_late_rank(workspace):
    workspace.write("train.py", FSDP)
    watched = workspace.watched("--", "torchrun", "--standalone", "--nproc-per-node", "2", "train.py")
    communication = check_straggler(watched)
    waiting = communication["ranks"][0]
    (group,) = [group for group in waiting["groups"] if group["name"] == "shard"]
    assert (group["ranks"], group["device"]) == ([0, 1], "cpu")
    assert group["calls_per_step"] >= 2  # parameters are gathered, gradients scattered
    assert group["bytes_per_step"] >= 3 * 4 * 64 * 64 / 2
    assert group["exposed_s"] > 0.5 * waiting["step_s"]
    phases = {phase["name"]: phase["share"] for phase in watched.report["phases"]}
    assert phases["comm"] > 0.5 > phases.get("forward", 0.0)


@pytest.mark.long
def test_a_run_that_sees_one_of_two_nodes_does_not_blame_its_own_mathematics(workspace):
    workspace.write("train.py", TORCHRUN)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    nodes = [workspace.start_watched("train.py", env={**address, "RANK": str(rank)}) for rank in (0, 1)]
    waiting, late = [node.result() for node in nodes]
    assert (waiting.status, late.status) == (0, 0), waiting.err + late.err
    report = waiting.report
    assert (report["run"]["world_size"], report["communication"]["unseen"]) == (2, [1])
    assert any("rank 1 of 2 not seen" in note for note in report["run"]["notes"])
    verdict = report["verdict"]
    assert (verdict["pattern"], verdict["cause"], verdict["confidence"]) == (
        "communication-bound",
        "unseen-rank",
        "low",
    )
    assert "not seen" in verdict["summary"]
    assert late.report["communication"]["unseen"] == [0]
    assert late.report["verdict"]["pattern"] != "compute-bound"
    assert "fetch_slowly" in late.report["verdict"]["culprit"]["function"]


def test_two_nodes_that_share_a_folder_make_one_report(workspace):
    workspace.write("train.py", TORCHRUN)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    shared = workspace.beside / "shared"
    nodes = [
        workspace.start_watched("train.py", options=["--gather", shared], env={**address, "RANK": str(rank)})
        for rank in (0, 1)
    ]
    first, second = [node.result() for node in nodes]
    assert (first.status, second.status) == (0, 0), first.err + second.err
    communication = check_straggler(first)
    assert (communication["late"], len(communication["nodes"])) == ([1], 2)
    assert second.report_bytes is None  # one report: several nodes may name the same file
    (path,) = shared.glob("*/report.json")
    assert str(path) in second.err
    assert json.loads(path.read_bytes())["verdict"] == first.report["verdict"]
    assert not list(shared.glob("started-*"))


def test_a_node_whose_peers_never_come_reports_what_it_saw(workspace):
    workspace.write("train.py", TORCHRUN)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    options = ["--gather", workspace.beside / "shared", "--gather-wait", "1s"]
    late = workspace.start_watched("train.py", options=options, env={**address, "RANK": "1"})
    workspace.start([sys.executable, "train.py"], env={**address, "RANK": "0"})
    result = late.result()
    assert result.status == 0, result.err
    assert "waiting up to 1 s for 1 of 2 ranks" in result.err
    assert result.report["communication"]["unseen"] == [0]
    assert len(result.report["communication"]["nodes"]) == 1


def test_a_place_that_takes_no_file_is_said_before_the_program_runs(workspace):
    workspace.write("train.py", "open('ran', 'w')")
    result = workspace.watched("train.py", options=["--gather", "train.py"])
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert not (workspace.folder / "ran").exists()


@pytest.fixture
def on_nodes():
    """What runs a command on one of two simulated machines."""
    try:
        with two_nodes() as words:
            yield words
    except NotPossible as reason:
        pytest.skip(str(reason))


@pytest.mark.long
def test_two_nodes_with_clocks_hours_apart(workspace, on_nodes):
    workspace.write("train.py", TORCHRUN)
    port, shared = free_port(), workspace.beside / "shared"
    nodes = []
    for i, ahead_s in enumerate((0, 50_000)):
        torchrun = ["torchrun", "--nnodes", "2", "--node-rank", str(i), "--nproc-per-node", "1"]
        torchrun += ["--master-addr", ADDRESS, "--master-port", port, "train.py"]
        nodes.append(
            workspace.start_watched("--", *torchrun, options=["--gather", shared], wrapper=on_nodes(i, ahead_s))
        )
    first, second = [node.result() for node in nodes]
    assert (first.status, second.status) == (0, 0), first.err + second.err
    communication = check_straggler(first)
    hosts = [rank["host"] for rank in communication["ranks"]]
    assert len(set(hosts)) == 2
    assert [node["host"] for node in communication["nodes"]] == hosts
    # On a loaded machine a rank wakes up late, but not by a tenth of a second in the median.
    assert communication["nodes"][1]["clock_offset_s"] == pytest.approx(50_000, abs=0.1)
    assert communication["ranks"][1]["arrives_last"] > 0.9
