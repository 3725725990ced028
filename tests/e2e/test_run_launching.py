"""The ways in which a program and its processes are started: modules, packages, torchrun, workers."""

import sys

import pytest
from programs import SLOW_DATASET

PROGRAM = """
    import sys

    from tiny import training

    for step, loss in training(60):
        print(step, loss.hex())
    print(__name__, __package__, __file__, __spec__ and __spec__.name, sys.argv, sys.path)
"""


def test_a_module(workspace):
    workspace.write("package/__init__.py", "")
    workspace.write("package/train.py", PROGRAM)
    _, watched = workspace.both("-m", "package.train", "--epochs", "1", "-m", "2")
    assert watched.steps >= 1
    assert watched.report["run"]["command"] == ["-m", "package.train", "--epochs", "1", "-m", "2"]


def test_a_missing_module(workspace):
    plain, watched = workspace.both("-m", "package.nowhere")
    assert plain.status == 1
    assert watched.steps == 0


def test_a_package_with_a_main(workspace):
    workspace.write("package/__main__.py", PROGRAM.replace("from tiny", "sys.path.append('.')\n    from tiny"))
    _, watched = workspace.both("package", "argument")
    assert watched.steps >= 1


def test_a_script_of_another_language_that_starts_python(workspace):
    workspace.write("program.py", PROGRAM)
    script = workspace.write("train.sh", '#!/bin/sh\n"$PYTHON" program.py "$@"\n')
    script.chmod(0o755)
    environment = {"PYTHON": sys.executable}
    plain = workspace.start(["./train.sh", "x"], env=environment).result()
    watched = workspace.watched("./train.sh", "x", env=environment)
    assert (watched.status, watched.out) == (plain.status, plain.out)
    assert watched.steps >= 1


def test_a_program_that_starts_itself_anew(workspace):
    workspace.write(
        "program.py",
        """
        import os
        import sys

        from tiny import training

        losses = [loss.hex() for step, loss in training(60)]
        if len(sys.argv) == 1:
            os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
        print(sys.argv, losses)
        """,
    )
    _, watched = workspace.both("program.py")
    assert watched.steps >= 1


@pytest.mark.slow
def test_processes_of_the_programs_own(workspace):
    workspace.write(
        "program.py",
        """
        import multiprocessing
        import os
        import subprocess
        import sys
        import threading
        from concurrent.futures import ProcessPoolExecutor

        from tiny import training


        def last_loss(steps):
            return [loss for _, loss in training(steps, pause=0)][-1].hex()


        def main():
            losses = [loss.hex() for _, loss in training(60)]
            for context in ("fork", "spawn"):
                with ProcessPoolExecutor(1, multiprocessing.get_context(context)) as pool:
                    print(context, list(pool.map(last_loss, [10, 20, 30])))
            pid = os.fork()
            if pid == 0:
                os._exit(len(last_loss(40)) % 7)
            print("forked", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len(losses[39]) % 7)
            thread = threading.Thread(target=lambda: print("thread", last_loss(40)))
            thread.start()
            thread.join()
            command = [sys.executable, "-c", "import tiny; print('started', [l for _, l in tiny.training(5)])"]
            print(subprocess.run(command, capture_output=True))
            print(losses)


        if __name__ == "__main__":
            main()
        """,
    )
    plain, watched = workspace.both("program.py")
    assert plain.status == 0, plain.err
    assert watched.steps >= 1


@pytest.mark.parametrize("context", [pytest.param("fork", marks=pytest.mark.long), "spawn"])
def test_loader_workers(workspace, context):
    workspace.write("program.py", SLOW_DATASET)
    _, watched = workspace.both("program.py", "2", context)
    assert watched.status == 0
    culprit = watched.report["verdict"]["culprit"]
    assert culprit["function"] == "Slow.__getitem__"
    assert "worker" in culprit["where"]


@pytest.mark.slow
@pytest.mark.long
def test_two_ranks_under_torchrun(workspace):
    workspace.write(
        "ddp.py",
        """
        import os
        import time

        import torch
        import torch.distributed as dist
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        torch.manual_seed(dist.get_rank())
        model = DistributedDataParallel(nn.Linear(32, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        for step in range(120):
            loss = model(torch.randn(16, 32)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dist.all_reduce(loss.detach())
            losses.append(loss.item().hex())
        with open(f"losses-{os.environ['RANK']}.txt", "w") as file:
            file.write("\\n".join(losses))
        dist.destroy_process_group()
        # A gloo thread that still holds a tensor aborts once the interpreter ends, one time in 40 (torch#179291).
        time.sleep(0.5)
        """,
    )
    command = ["torchrun", "--standalone", "--nproc-per-node", "2", "ddp.py"]

    def losses():
        return [(workspace.folder / f"losses-{rank}.txt").read_text() for rank in (0, 1)]

    assert workspace.plain("-m", "torch.distributed.run", *command[1:]).status == 0
    without = losses()
    watched = workspace.watched("--", *command)
    assert watched.status == 0, watched.err
    assert losses() == without
    assert watched.report["run"]["world_size"] == 2
    assert watched.steps >= 1


@pytest.mark.slow
def test_a_rank_that_fails(workspace):
    workspace.write("ddp.py", "import os, sys, torch\nsys.exit(int(os.environ['RANK']) * 3)")
    command = ["torchrun", "--standalone", "--nproc-per-node", "2", "ddp.py"]
    watched = workspace.watched("--", *command)
    assert watched.status == 1
    assert "ChildFailedError" in watched.err
    assert watched.report["run"]["exit_code"] == 1
