"""Programs that are not an ordinary training script: no steps, no torch, NaN, standard input."""

import importlib.util
import sys

import pytest


def test_a_run_of_zero_steps(workspace):
    workspace.write("program.py", "import torch\nprint(torch.ones(2).sum().item())")
    _, watched = workspace.both("program.py")
    assert watched.status == 0
    assert watched.steps == 0
    assert watched.report["throughput"]["steps_per_s"] is None
    assert watched.report["phases"] == []
    assert watched.report["verdict"]["confidence"] == "low"
    assert "no step was seen" in watched.err


def test_a_loop_that_never_calls_a_seam(workspace):
    workspace.write(
        "program.py",
        """
        import torch

        weights = torch.zeros(4)
        for step in range(30_000):
            weights += 0.1 * (torch.ones(4) - weights)
        print(weights.tolist())
        """,
    )
    _, watched = workspace.both("program.py")
    assert watched.status == 0
    assert watched.steps == 0
    assert "unstall.steps" in " ".join(watched.report["verdict"]["advice"])


def test_weights_that_are_updated_by_hand(workspace):
    """The steps are those of training, not of the many calls by which the model is tried out afterwards."""
    workspace.write(
        "program.py",
        """
        import torch

        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))


        def noise():
            return sum((i * i) % 7 for i in range(200_000)) % 5


        for _ in range(200):
            x = torch.randn(32, 64)
            model.zero_grad()
            model(x + noise()).square().mean().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.01 * parameter.grad
        with torch.no_grad():
            for _ in range(400):
                model(torch.randn(2000, 64))
        """,
    )
    _, watched = workspace.both("program.py")
    assert 20 < watched.steps < 200
    verdict = watched.report["verdict"]
    assert verdict["pattern"] == "host-bound"
    assert verdict["culprit"]["function"].startswith("noise")
    assert {"forward", "backward"} <= {phase["name"] for phase in watched.report["phases"]}


def test_weights_that_are_bare_tensors(workspace):
    workspace.write(
        "program.py",
        """
        import torch

        w = torch.randn(64, 64, requires_grad=True)


        def squares(n):
            return sum((i * i) % 7 for i in range(n)) % 5


        for _ in range(200):
            loss = (torch.randn(32, 64) @ w + squares(200_000)).square().mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
                w.grad = None
        """,
    )
    _, watched = workspace.both("program.py")
    assert 20 < watched.steps < 200
    verdict = watched.report["verdict"]
    assert verdict["pattern"] == "host-bound"
    assert verdict["culprit"]["function"].startswith("squares")


@pytest.mark.skipif(importlib.util.find_spec("gymnasium") is None, reason="Gymnasium is not installed")
def test_an_agent_that_is_evaluated_in_an_environment_of_its_own(workspace):
    """The steps are those that it learns from, however many it is evaluated in."""
    workspace.write(
        "program.py",
        """
        import gymnasium
        import torch

        policy = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
        optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)


        def act(observation):
            with torch.no_grad():
                return int(policy(torch.as_tensor(observation)).argmax())


        def rate_policy():
            env, rewards = gymnasium.make("CartPole-v1"), 0.0
            for _ in range(400):
                observation, _ = env.reset()
                over = False
                while not over:
                    observation, reward, *ends, _ = env.step(act(observation))
                    rewards += reward
                    over = any(ends)
            return rewards


        env = gymnasium.make("CartPole-v1")
        observation, _ = env.reset(seed=0)
        for step in range(1, 601):
            observation, reward, *ends, _ = env.step(act(observation))
            if any(ends):
                observation, _ = env.reset()
            optimizer.zero_grad()
            policy(torch.randn(64, 4)).square().mean().backward()
            optimizer.step()
            if step % 100 == 0:
                rate_policy()
        """,
    )
    watched = workspace.watched("program.py")
    assert watched.report["run"]["steps"] <= 600
    verdict = watched.report["verdict"]
    assert (verdict["pattern"], verdict["cause"]) == ("callback-bound", "validation")
    assert verdict["culprit"]["function"] in ("rate_policy", "act")


def test_a_search_whose_trials_train_in_a_pool(workspace):
    """The steps are those of a trial, not of the winner that is fitted once more in the process that waits for them."""
    workspace.write(
        "program.py",
        """
        import multiprocessing

        import torch


        def noise():
            return sum((i * i) % 7 for i in range(100_000)) % 5


        def fit(rate, steps=300):
            torch.set_num_threads(1)
            model = torch.nn.Linear(64, 64)
            optimizer = torch.optim.SGD(model.parameters(), lr=rate)
            for _ in range(steps):
                x = torch.randn(32, 64) + (noise() if steps > 100 else 0)
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
            return rate


        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                best, *_ = pool.map(fit, [0.001, 0.002])
            fit(best, steps=60)
        """,
    )
    watched = workspace.watched("program.py")
    assert 60 < watched.steps <= 300
    assert watched.report["throughput"]["flops_coverage"] == 1
    verdict = watched.report["verdict"]
    assert verdict["pattern"] == "host-bound"
    assert verdict["culprit"]["function"].startswith("noise")


def test_marked_steps_without_torch(workspace):
    workspace.write(
        "program.py",
        """
        import sys
        import time

        import unstall


        def work():
            time.sleep(0.02)


        for number in unstall.steps(range(60)):
            work()
        print("torch" in sys.modules)
        """,
    )
    _, watched = workspace.both("program.py")
    assert watched.out == "False\n"
    assert watched.steps >= 1


@pytest.fixture
def other_python(workspace):
    """An interpreter of an environment in which nothing is installed."""
    python = workspace.beside / "venv" / "bin" / "python"
    assert workspace.plain("-m", "venv", "--without-pip", python.parent.parent).status == 0
    return python


def test_no_torch_in_the_programs_environment(workspace, other_python):
    workspace.write("program.py", "print('started')\nimport torch")
    plain = workspace.start([other_python, "program.py"]).result()
    watched = workspace.watched("--", other_python, "program.py")
    assert (watched.status, watched.out) == (1, plain.out)
    assert watched.err.startswith(plain.err)
    assert "ModuleNotFoundError: No module named 'torch'" in watched.err
    assert watched.report["run"]["exit_code"] == 1
    assert watched.steps == 0
    assert "nothing was recorded" in watched.notes


def test_a_program_that_needs_no_torch(workspace, other_python):
    workspace.write("program.py", "import sys\nprint(sys.prefix, sum(i * i for i in range(10**6)))")
    plain = workspace.start([other_python, "program.py"]).result()
    watched = workspace.watched("--", other_python, "program.py")
    assert (watched.status, watched.out) == (0, plain.out)
    assert watched.steps == 0


def test_a_python_that_cannot_be_watched(workspace):
    """``-E`` ignores PYTHONPATH: nothing is recorded, and the report says so."""
    workspace.write("program.py", "from tiny import training\nprint([loss.hex() for _, loss in training(40)])")
    plain = workspace.plain("-E", "program.py")
    watched = workspace.watched("--", sys.executable, "-E", "program.py")
    assert (watched.status, watched.out) == (0, plain.out)
    assert watched.steps == 0
    assert "nothing was recorded" in watched.notes


def test_any_other_command(workspace):
    watched = workspace.watched("--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert watched.status == 5
    assert watched.out == "out\n"
    assert watched.err.startswith("err\n")
    assert watched.steps == 0


def test_losses_that_are_not_a_number(workspace):
    workspace.write(
        "program.py",
        """
        import torch

        torch.set_num_threads(1)
        model = torch.nn.Linear(4, 1)
        for step in range(80):
            loss = (model(torch.ones(2, 4)) * float("nan")).sum()
            loss.backward()
            print(loss.item())
        """,
    )
    _, watched = workspace.both("program.py")
    assert watched.status == 0
    assert watched.steps >= 1
    assert "NaN" in watched.notes


def test_a_program_that_reads_standard_input(workspace):
    workspace.write(
        "program.py",
        """
        import sys

        from tiny import training

        lines = iter(sys.stdin.readline, "")
        for (step, loss), line in zip(training(60), lines):
            print(step, line.strip(), loss.hex())
        print(sys.stdin.read())
        """,
    )
    given = "".join(f"line {i} ü\n" for i in range(80)).encode()
    _, watched = workspace.both("program.py", stdin=given)
    assert "line 79" in watched.out
    assert watched.steps >= 1


def test_a_program_with_a_sitecustomize_of_its_own(workspace):
    workspace.write(
        "site folder/sitecustomize.py",
        """
        import builtins
        import sys

        builtins.customized = getattr(builtins, "customized", 0) + 1
        print("customized", __file__, file=sys.stderr)
        """,
    )
    workspace.write(
        "program.py",
        """
        import builtins
        import subprocess
        import sys

        import sitecustomize
        from tiny import training

        steps = sum(1 for _ in training(60))
        print(steps, builtins.customized, sitecustomize.__file__, sys.path)
        sys.stdout.flush()
        subprocess.run([sys.executable, "-c", "import builtins, sys; print(builtins.customized, sys.path)"])
        """,
    )
    _, watched = workspace.both("program.py", env={"PYTHONPATH": str(workspace.folder / "site folder")})
    assert watched.steps >= 1


def test_a_sitecustomize_that_raises(workspace):
    workspace.write("site/sitecustomize.py", "raise RuntimeError('broken')")
    workspace.write("program.py", "print('ran')")
    environment = {"PYTHONPATH": str(workspace.folder / "site")}
    plain, watched = (run("program.py", env=environment) for run in (workspace.plain, workspace.watched))
    assert (watched.status, watched.out) == (plain.status, plain.out)
