"""`unstall run --ray` on a real Ray cluster of two nodes: the workers that it starts are recorded on their nodes."""

import importlib.util
import signal
import tempfile
from pathlib import Path

import pytest
from harness import free_port
from ray_cluster import two_nodes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]

# A function of the main file travels by value: Ray's workers cannot import it.
TRAINING = """
    import os
    import sys
    import time

    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


    def features(rank, torch):
        x = torch.randn(16, 32)
        if rank == 1:
            time.sleep(0.02)  # late
        return x


    @ray.remote(num_cpus=1)
    def train(rank, world_size, port):
        import torch
        import torch.distributed

        torch.set_num_threads(1)
        model = torch.nn.Linear(32, 32)
        if world_size > 1:
            address = f"tcp://127.0.0.1:{port}"
            torch.distributed.init_process_group("gloo", address, rank=rank, world_size=world_size)
            model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(300):
            x = features(rank, torch)
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        given = os.environ.get("GIVEN")
        return rank, given, [path for path in sys.path if "bootstrap" in path]


    world_size, port = int(sys.argv[1]), int(sys.argv[2])
    ray.init(address="auto", log_to_driver=False, runtime_env={"env_vars": {"GIVEN": "by the program"}})
    nodes = sorted(node["NodeID"] for node in ray.nodes())[:world_size]
    places = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    first = 0 if world_size > 1 else 1
    calls = [
        train.options(scheduling_strategy=place).remote(rank, world_size, port)
        for rank, place in enumerate(places, first)
    ]
    print(sorted(rank for rank, *_ in ray.get(calls)))
    print(*ray.get(calls[0])[1:], "RAY_RUNTIME_ENV_HOOK" in os.environ)
"""


@pytest.fixture(scope="module")
def cluster():
    with two_nodes() as made:
        yield made


def left_behind():
    return set(Path(tempfile.gettempdir()).glob("unstall-ray-*"))


def run(workspace, cluster, *words):
    """The result of `unstall run --ray`, which has left nothing on the nodes."""
    before = left_behind()  # by a run that was killed
    result = workspace.watched(*words, options=["--ray"], env={"RAY_ADDRESS": cluster.address})
    assert result.status == 0, result.err
    assert left_behind() <= before
    return result


def test_ranks_that_ray_starts_on_several_nodes_are_one_report(workspace, cluster):
    result = run(workspace, cluster, workspace.write("train.py", TRAINING), "2", free_port())
    assert result.out.splitlines() == ["[0, 1]", "by the program [] False"]
    assert result.report["run"]["world_size"] == 2
    verdict = result.report["verdict"]
    assert (verdict["pattern"], verdict["culprit"]["function"]) == ("straggler", "features")


@pytest.mark.long
def test_a_loop_of_one_worker_is_found_on_its_node(workspace, cluster):
    result = run(workspace, cluster, workspace.write("train.py", TRAINING), "1", free_port())
    assert result.report["verdict"]["culprit"]["function"] == "features"
    assert "the loop ran on the Ray node" in result.notes


def test_a_program_that_asks_no_worker_is_itself_the_run(workspace, cluster):
    result = run(workspace, cluster, workspace.write("train.py", "import tiny\n\nlist(tiny.training(100))\n"))
    assert result.steps > 0
    assert "Ray" not in result.notes


def test_a_signal_to_the_command_reaches_the_program(workspace, cluster):
    program = workspace.write(
        "train.py",
        """
        import signal
        import sys

        signal.signal(signal.SIGUSR1, lambda *_: sys.exit("a checkpoint is written"))
        print("ready", flush=True)
        signal.pause()
        """,
    )
    running = workspace.start_watched(program, options=["--ray"], env={"RAY_ADDRESS": cluster.address})
    running.wait_for("ready")
    running.signal(signal.SIGUSR1)
    result = running.result()
    assert result.status == 1
    assert "a checkpoint is written" in result.err


def test_without_a_cluster_the_program_does_not_start(workspace):
    result = workspace.watched("tiny.py", options=["--ray"], env={"RAY_ADDRESS": "127.0.0.1:9"})
    assert result.status == 2
    assert "no Ray cluster answers" in result.err
    assert result.out == ""
