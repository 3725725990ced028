"""`unstall simplify` on whole programs: what is found, what is refused, and that nothing of theirs is harmed."""

import json
import signal
import sys
import time

import pytest

UNSTALL = (sys.executable, "-m", "unstall")
SIMPLIFY = (*UNSTALL, "simplify")

TRAINER = """
    import itertools
    import pathlib
    import sys
    import time

    import torch

    STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    counter = itertools.count()


    class Diary:
        def write(self, step, loss):
            time.sleep(0.02)
            with open("diary.txt", "a") as file:
                file.write(f"{step} {loss}\\n")


    def numbers():
        yield 1
        yield 2


    def fill(box):
        box.append(1)
        return len(box)


    def ticket():
        return next(counter)


    def main():
        torch.manual_seed(0)
        torch.set_num_threads(1)
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        x = torch.randn(32, 64)
        diary = Diary()
        last = -1
        for step in range(STEPS):
            box = []
            assert fill(box) == len(box) and sum(numbers()) == 3
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            diary.write(step, loss.item())
            now = ticket()
            if now <= last:
                raise RuntimeError("the same ticket twice")
            last = now
        print("done")


    main()
"""

CONTENTION = """
    import torch
    from torch.utils.data import DataLoader, Dataset


    class Rows(Dataset):
        def __len__(self):
            return 100_000

        def __getitem__(self, index):
            return self.jitter(index)

        def jitter(self, index):
            total = 0
            for i in range(60_000):
                total = (total * 31 + i) % 1_000_003
            return torch.full((256,), total / 1_000_003)


    def main():
        torch.set_num_threads(1)
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        for batch in DataLoader(Rows(), batch_size=16, num_workers=2):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    main()
"""


FAULTING = """
    import torch

    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for step in range(100_000):
        held = [torch.ones(8 << 20) for _ in range(3)]
        loss = model(held[0][:6400].view(100, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

SHORT = """
    import sys
    import time

    import unstall


    def note(step):
        time.sleep(0.02)


    for step in unstall.steps(range(int(sys.argv[1]))):
        time.sleep(0.02)
        note(step)
"""


RANKS = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel


    def main():
        dist.init_process_group("gloo")
        torch.set_num_threads(1)
        model = DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        x = torch.randn(16, 256)
        for step in range(1_000_000):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dist.all_reduce(loss.detach())


    main()
"""

VALIDATION = """
    import time

    import torch
    from torch.utils.data import DataLoader, TensorDataset


    def main():
        torch.set_num_threads(1)
        data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
        model = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        for epoch in range(1_000_000):
            for x, y in DataLoader(data, batch_size=16, shuffle=True):
                time.sleep(0.01)
                optimizer.zero_grad()
                (model(x) - y).square().mean().backward()
                optimizer.step()
            with torch.no_grad():
                for x, y in DataLoader(data, batch_size=4):
                    time.sleep(0.01)
                    model(x)


    main()
"""

CHECKED = """
    import torch
    from torch import nn


    def main():
        torch.set_num_threads(1)
        torch.autograd.set_detect_anomaly(True)
        model = nn.Sequential(*(part for _ in range(8) for part in (nn.Linear(16, 16), nn.Tanh())))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        while True:
            loss = model(torch.randn(8, 16)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    main()
"""


def simplify(workspace, *words, options=(), **kwargs):
    """Run ``unstall simplify`` to its end."""
    return workspace.start_watched(*words, options=options, unstall=SIMPLIFY, **kwargs).result()


def failures(report):
    return {one["name"]: one["why"] for one in report["study"].get("failures", ())}


def accounted(report):
    """The trials that gave a result or were left for want of time; those that harmed the program fail the test."""
    assert not any("with it the program" in why for why in failures(report).values()), failures(report)
    study = report["study"]
    return {one["name"] for one in report["experiments"]} | {*failures(report), *study.get("untried", ())}


def test_functions_are_stubbed_or_it_is_said_why_not(workspace):
    workspace.write("train.py", TRAINER)
    (workspace.folder / "diary.txt").write_text("from before\n")
    stubs = ["Diary.write", "numbers", "fill", "ticket", "nowhere"]
    options = [word for name in stubs for word in ("--stub", name)]
    result = simplify(workspace, "train.py", options=[*options, "--budget", "100s"])
    assert result.status == 0
    assert result.out == ""
    report = result.report
    assert report["kind"] == "simplify"
    (diary,) = (one for one in report["experiments"] if one["name"] == "without Diary.write")
    assert diary["ci95"][0] <= diary["ratio"] <= diary["ci95"][1]
    assert diary["ratio"] > 2
    why = failures(report)
    assert "generator" in why["without numbers"]
    assert "changes its argument box" in why["without fill"]
    assert "the same ticket twice" in why["without ticket"]
    assert "alive" in why["without nowhere"]
    assert report["verdict"]["headroom_known_by"] == "measured"
    assert report["verdict"]["culprit"]["function"] == "Diary.write"
    assert any(one["component"] == "without Diary.write" for one in report["ceilings"])
    assert "without Diary.write" in result.err
    assert (workspace.folder / "diary.txt").read_text() == "from before\n"
    entries = json.loads(workspace.start([*UNSTALL, "history", "--json", "-"]).result().out)
    assert [(one["id"], one["kind"]) for one in entries] == [(report["run"]["id"], "simplify")]
    predicted = workspace.start([*UNSTALL, "what-if", "last", "--set", "Diary.write=0.5x"]).result()
    assert predicted.status == 0, predicted.err


@pytest.mark.serial
@pytest.mark.long
def test_workers_that_take_the_cores_are_not_mistaken_for_computation(workspace):
    workspace.write("train.py", CONTENTION)
    report = simplify(workspace, "train.py", options=["--stub", "data", "--budget", "45s"]).report
    (cached,) = report["experiments"]
    assert cached.get("conclusive", True) and cached["ci95"][0] > 1.2
    assert report["verdict"]["pattern"] == "input-bound"
    assert report["verdict"]["headroom_known_by"] == "measured"
    assert report["verdict"]["culprit"]["function"] == "Rows.jitter"


def test_a_program_that_ends_in_the_middle_is_started_again(workspace):
    workspace.write("train.py", SHORT)
    report = simplify(workspace, "train.py", "160", options=["--stub", "note", "--budget", "28s"]).report
    (noted,) = report["experiments"]
    assert noted["name"] == "without note" and noted["segments"] >= 8
    assert report["study"]["runs"] > 2, "one to observe, one to try, and those that ended in between"
    assert failures(report) == {}


def test_a_program_too_short_to_compare_is_told_so(workspace):
    workspace.write("train.py", SHORT)
    report = simplify(workspace, "train.py", "25", options=["--stub", "note", "--budget", "2m"]).report
    assert report["experiments"] == []
    assert "give it more steps" in failures(report)["without note"]


@pytest.mark.serial
def test_ranks_are_freed_of_each_other_and_one_is_tried_alone(workspace):
    workspace.write("train.py", RANKS)
    words = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]
    trials = ["--stub", "collectives", "--delay", "optimizer@1=+100%", "--set", "ranks=1"]
    report = simplify(workspace, *words, options=[*trials, "--budget", "45s"]).report
    assert report["run"]["world_size"] == 2
    assert accounted(report) == {"without collectives", "rank 1: optimizer +100%", "one rank alone"}
    assert report["experiments"], failures(report)
    assert "rank 1: optimizer +100%" not in failures(report)


@pytest.mark.serial
@pytest.mark.long
def test_validation_is_cut_short_and_parts_are_slowed(workspace):
    workspace.write("train.py", VALIDATION)
    trials = ["--stub", "validation", "--delay", "backward=+50%", "--delay", "optimizer=+50%", "--set", "workers=1"]
    report = simplify(workspace, "train.py", options=[*trials, "--budget", "40s"]).report
    assert accounted(report) == {"without validation", "backward +50%", "optimizer +50%", "1 worker"}
    (first, *_) = report["experiments"]
    assert first["name"] == "without validation" and first["ratio"] > 1.5


@pytest.mark.serial
@pytest.mark.long
def test_the_gain_of_keeping_freed_memory_is_measured(workspace):
    workspace.write("train.py", FAULTING)
    report = simplify(workspace, "train.py", options=["--set", "keep-memory=1", "--budget", "30s"]).report
    assert accounted(report) == {"keeping freed memory"}
    assert [trial["name"] for trial in report["experiments"]] == ["keeping freed memory"], failures(report)


@pytest.mark.serial
@pytest.mark.long
def test_the_gain_of_turning_checks_off_is_measured(workspace):
    workspace.write("train.py", CHECKED)
    report = simplify(workspace, "train.py", options=["--stub", "checks", "--budget", "1m"]).report
    assert accounted(report) == {"checks turned off"}
    assert [trial["name"] for trial in report["experiments"]] == ["checks turned off"], report["study"]
    gain = report["verdict"]["expected_gain"]
    assert (report["verdict"]["cause"], gain["known_by"]) == ("anomaly-detection", "measured")


def test_a_program_without_steps_is_told_so(workspace):
    workspace.write("hello.py", "print('hello')\n")
    result = simplify(workspace, "hello.py")
    assert result.status == 0
    assert result.report["run"]["steps"] == 0
    assert "no step was seen" in result.err


def test_ctrl_c_leaves_nothing(workspace):
    workspace.write("train.py", TRAINER)
    running = workspace.start_watched("train.py", options=["--budget", "60s"], unstall=SIMPLIFY)
    deadline = time.monotonic() + 60
    while not list(workspace.beside.glob("state/unstall/*/runs/*/*/rec-*.bin")) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.signal(signal.SIGINT, group=True)
    result = running.result()
    assert result.status == 130
    assert not (workspace.folder / "diary.txt").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.py"], "no such file"),
        (["--delay", "fill", "train.py"], "write it as NAME=+20%"),
        (["--delay", "validation=+20%", "train.py"], "can be slowed"),
        (["--budget", "soon", "train.py"], "is not a duration"),
        (["--set", "batch=4", "train.py"], "write it as NAME=N"),
        (["--set", "ranks=2", "train.py"], "ranks can only be 1"),
        (["--stub", "a b", "train.py"], "give a function"),
        (["--json", "no/such/folder.json", "train.py"], "no folder"),
        ([], "nothing to run"),
    ],
)
def test_bad_input_is_one_clear_line(workspace, words, message):
    workspace.write("train.py", TRAINER)
    result = workspace.start([*SIMPLIFY, *words]).result()
    assert result.status == 2
    assert message in result.err
    assert "Traceback" not in result.err
