"""`--on ray` on a real Ray cluster of two nodes: calls, whole searches, and what is found where a node is lost."""

import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path

import pytest
from ray_cluster import two_nodes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]

UNSTALL = (sys.executable, "-m", "unstall")

# Functions of the main file travel by value: Ray's workers cannot import it.
CALLS = """
    import contextlib
    import json
    import os

    from unstall.runs.errors import Refused
    from unstall.runs.on_ray import open_on_ray


    @contextlib.contextmanager
    def opened(tell):
        tell("opened")
        yield tell


    def look(tell):
        import os

        import ray

        tell("at work")
        return ray.get_runtime_context().get_node_id(), dict(os.environ), os.getcwd(), os.getpid()


    def refuse(tell):
        from unstall.runs.errors import Refused

        raise Refused("not like that")


    told, heard = [], []
    with open_on_ray(opened, told.append, heard.append) as place:
        node, variables, folder, pid = place.do(look)
        again = place.do(look)[3]
        try:
            place.do(refuse)
        except Refused as error:
            refusal = str(error)
    facts = {"node": node, "folder": folder, "pids": [pid, again, os.getpid()], "refusal": refusal, "told": told}
    variables = {name: variables.get(name) for name in ("OF_THE_COMMAND", "OMP_NUM_THREADS")}
    print(json.dumps({**facts, "heard": heard, "variables": variables}), flush=True)
"""

OPENED = """
    import contextlib
    import json
    import sys
    import time

    from unstall.runs.on_ray import NoNode, open_on_ray


    @contextlib.contextmanager
    def opened(tell):
        yield tell
"""

LOSS = (
    OPENED
    + """

    known = []


    def work(tell, known):
        import time

        import ray

        tell("begun")
        if not known:
            time.sleep(600)
        return ray.get_runtime_context().get_node_id(), list(known)


    def die(tell):
        import os

        os._exit(1)


    def hear(message):
        if not known:
            known.append("first")
            print("begun", flush=True)


    with open_on_ray(opened, lambda line: None, hear) as place:
        node, seen = place.do(work, known)
        moves = list(place.moves)
        try:
            place.do(die)
        except NoNode as error:
            print(json.dumps({"node": node, "seen": seen, "moves": moves, "end": str(error)}), flush=True)
"""
)

INTERRUPT = (
    OPENED
    + """

    began = []


    def work(tell, mark):
        import os
        import time

        tell("begun")
        while True:
            with open(mark + ".new", "w") as file:
                file.write(str(time.time()))
            os.replace(mark + ".new", mark)  # whole whenever the work is ended
            time.sleep(0.1)


    def wait(seconds):
        time.sleep(seconds)
        if began:
            raise KeyboardInterrupt


    try:
        with open_on_ray(opened, lambda line: None, began.append, wait) as place:
            place.do(work, sys.argv[1])
    except KeyboardInterrupt:
        print(time.time(), flush=True)
"""
)

COLLECTOR = """
    import gc

    import torch


    class Shelf:
        def __init__(self):
            self.books = [[str(number)] for number in range(300_000)]


    def tidy():
        gc.collect()


    def main():
        torch.manual_seed(0)
        torch.set_num_threads(1)
        shelf = Shelf()
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(100_000):
            loss = model(torch.randn(32, 64)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            tidy()


    main()
"""


@pytest.fixture
def cluster():
    with two_nodes() as started:
        yield started


def run(workspace, cluster, source, *words, **variables):
    """Start a script that is a command of the cluster's."""
    script = workspace.write("script.py", source)
    return workspace.start([sys.executable, script, *words], env={"RAY_ADDRESS": cluster.address, **variables})


def test_calls_run_on_the_strongest_node_as_this_command_would(workspace, cluster, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    result = run(workspace, cluster, CALLS, OF_THE_COMMAND="yes").result()
    assert result.status == 0, result.err
    facts = json.loads(result.out.splitlines()[-1])
    assert facts["node"] == cluster.stronger and facts["folder"] == str(workspace.folder)
    assert facts["pids"][0] == facts["pids"][1] != facts["pids"][2], "one process holds what was opened"
    assert facts["variables"] == {"OF_THE_COMMAND": "yes", "OMP_NUM_THREADS": None}, "Ray's own is not the program's"
    assert facts["refusal"] == "not like that"
    assert facts["heard"] == ["opened", "at work", "at work"]
    assert len(facts["told"]) == 1 and "2 cores" in facts["told"][0]


@pytest.mark.long
def test_where_a_node_is_lost_another_one_goes_on_with_what_is_known_by_then(workspace, cluster):
    running = run(workspace, cluster, LOSS)
    running.wait_for("begun")
    cluster.lose()
    result = running.result()
    assert result.status == 0, result.err
    facts = json.loads(result.out.splitlines()[-1])
    assert facts["node"] == cluster.head and facts["seen"] == ["first"]
    assert len(facts["moves"]) == 1 and "is lost" in facts["moves"][0]
    assert facts["end"] == "no node of the Ray cluster is left"


def test_an_interrupt_while_a_node_is_at_work_ends_that_work(workspace, cluster):
    mark = workspace.folder / "alive"
    result = run(workspace, cluster, INTERRUPT, mark).result()
    assert result.status == 0, result.err
    time.sleep(2.0)
    assert float(mark.read_text()) < float(result.out.splitlines()[-1]) + 1.5


@pytest.mark.long
def test_a_change_is_tried_on_a_node_and_the_patch_is_here(workspace, cluster):
    program = workspace.write("program.py", COLLECTOR)
    before = program.read_bytes()
    words = ("optimize", "--quick", "--budget", "90s", "--on", "ray", "--patch", "fix.patch", "program.py")
    result = workspace.start([*UNSTALL, *words], env={"RAY_ADDRESS": cluster.address}).result()
    assert result.status == 0, result.err
    assert "on the Ray node" in result.err and "kept gc-freeze" in result.err
    assert "gc.freeze()" in (workspace.folder / "fix.patch").read_text()
    assert program.read_bytes() == before


def wait_for_experiments():
    """Until a node has watched the program and started it for experiments, and a while longer."""
    while not list(Path(tempfile.gettempdir()).glob("unstall-simplify-*/child-2")):
        time.sleep(0.5)
    time.sleep(15)


@pytest.mark.long
def test_where_the_node_is_lost_what_it_found_stands(workspace, cluster):
    workspace.write("program.py", COLLECTOR)
    report = workspace.folder / "report.json"
    words = ("simplify", "--budget", "120s", "--stub", "tidy", "--stub", "backward", "--on", "ray", "--json", report)
    running = workspace.start(
        [*UNSTALL, *map(str, words), "program.py"], env={"RAY_ADDRESS": cluster.address}, report_path=report
    )
    wait_for_experiments()
    cluster.lose()
    result = running.result()
    assert result.status == 0, result.err
    assert {experiment["name"] for experiment in result.report["experiments"]} == {"without tidy", "without backward"}
    assert "is lost" in result.notes


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "at 127.0.0.1:1 no Ray cluster answers: start one with `ray start --head`"),
        ("ray://127.0.0.1:10001", "give the address of the cluster's head, host:port"),
    ],
)
@pytest.mark.parametrize("verb", ["optimize", "simplify"])
def test_without_a_cluster_it_says_how_to_get_one(workspace, verb, address, words):
    workspace.write("program.py", COLLECTOR)
    result = workspace.start([*UNSTALL, verb, "--on", "ray", "program.py"], env={"RAY_ADDRESS": address}).result()
    assert result.status == 2
    assert words in result.err and len(result.err.splitlines()) == 1
