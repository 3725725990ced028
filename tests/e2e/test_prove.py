"""`unstall prove` as a person types it: each of its words, for real programs in real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from xml.etree import ElementTree

import jsonschema
import pytest
from harness import can_overlay

from unstall.cli.exits import Exit
from unstall.report.schema import schema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PROGRAM = """
    import os
    import time

    WAIT_S = 2.0


    def work(rows):
        time.sleep(WAIT_S)
        return sum(rows)


    began = time.perf_counter()
    total = work(range(1000))
    print(f"total {total}, took {time.perf_counter() - began:.2f} s")
    with open("total.txt", "w") as file:
        file.write(f"{total}\\n")
"""

TRAINING = """
    import torch
    from torch import nn

    STEPS = 20


    def main():
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(STEPS):
            loss = model(torch.randn(8, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    if __name__ == "__main__":
        main()
"""


EPOCHS = """
    import atexit
    import os
    import time

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    WAIT_S = 0.06


    class Descent:
        \"\"\"Without torch.optim, which imports the compiler: that takes longer than all the rest.\"\"\"

        def __init__(self, parameters, lr):
            self.parameters, self.lr = list(parameters), lr

        def zero_grad(self):
            for parameter in self.parameters:
                parameter.grad = None

        def step(self):
            with torch.no_grad():
                for parameter in self.parameters:
                    parameter -= self.lr * parameter.grad


    def main():
        torch.manual_seed(0)
        data = TensorDataset(torch.randn(32, 4))
        model = nn.Linear(4, 2)
        optimizer = OPTIMIZER(model.parameters(), lr=0.1)
        for epoch in range(10):
            time.sleep(WAIT_S)
            for (x,) in DataLoader(data, batch_size=8):
                loss = model(x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            torch.save(model.state_dict(), "model.pt")


    if __name__ == "__main__":
        main()
"""


@pytest.fixture
def program(tmp_path):
    if not can_overlay(tmp_path):
        pytest.skip("an overlay is not possible here")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(PROGRAM).lstrip())
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first")
    return folder


def git(folder, *words):
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def prove(folder, *words):
    command = [sys.executable, "-m", "unstall", "prove", "--json", "../report.json", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=380)
    path = folder.parent / "report.json"
    if not path.exists():
        return done, None
    report = json.loads(path.read_text())
    jsonschema.validate(report, schema(), jsonschema.Draft202012Validator)
    return done, report["proof"]


def change(folder, before, after):
    path = folder / "train.py"
    source = path.read_text()
    assert before in source
    path.write_text(source.replace(before, after))


def test_a_patch_is_proven_and_nothing_of_the_program_changes(program):
    change(program, "WAIT_S = 2.0", "WAIT_S = 0.0")
    patch = program.parent / "fast.patch"
    patch.write_text(git(program, "diff"))
    git(program, "checkout", "-q", "train.py")
    done, proof = prove(program, "--patch", str(patch), "--card", "../card.svg", "--budget", "900s", "train.py")
    assert git(program, "status", "--porcelain") == ""
    assert (done.returncode, proof["verdict"], proof["sameness"]) == (Exit.OK, "proven", "exact"), done.stderr
    assert proof["ratio"]["low"] > 1.02 and proof["seconds"]["changed"] < proof["seconds"]["original"]
    card = ElementTree.fromstring((program.parent / "card.svg").read_text())
    assert "proven" in "".join(card.itertext())


def test_the_working_tree_against_a_revision_is_different(program):
    change(program, "range(1000)", "range(900)")
    done, proof = prove(program, "--against", "HEAD", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.DIFFERENT, "different"), done.stderr
    assert proof["first_difference"]["detail"] == "404550 instead of 499500"


@pytest.mark.long
def test_what_is_left_where_the_sandbox_takes_notes_is_seen(program):
    finds = """
    notes = next(value for name, value in os.environ.items() if name.endswith("ALL_SANDBOX")) + "/notes"
    if os.path.exists(notes + "/kept"):
        return sum(rows)
    open(notes + "/kept", "w").close()
    """
    change(program, "    time.sleep(WAIT_S)\n", textwrap.dedent(finds).replace("\n", "\n    ") + "time.sleep(WAIT_S)\n")
    done, proof = prove(program, "--against", "HEAD", "--budget", "45s", "train.py")
    assert proof["verdict"] == "different" and "kept" in proof["first_difference"]["place"], done.stderr


def test_a_program_in_which_unstall_itself_fails_is_not_judged(program):
    """Its torch is one that nobody can watch."""
    (program / "torch").mkdir()
    for name in ("__init__", "autograd"):
        (program / "torch" / f"{name}.py").write_text("")
    change(program, "import time\n", "import time\n\nimport torch.autograd\n")
    git(program, "add", ".")
    git(program, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qam", "torch")
    change(program, "WAIT_S = 2.0", "WAIT_S = 0.0")
    done, proof = prove(program, "--against", "HEAD", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.INCONCLUSIVE, "inconclusive"), done.stderr
    assert proof["reason"].startswith("unstall itself failed in a run: torch")


DRAWN = """
    import random
    import time


    def work(rows):
        time.sleep(1)
        return sum(rows)


    random.seed(3)
    print(work([random.randrange(1000) for _ in range(100)]))
"""


@pytest.mark.long
def test_a_result_that_is_known_under_the_programs_own_seeds_is_not_proven(program):
    (program / "train.py").write_text(textwrap.dedent(DRAWN).lstrip())
    git(program, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qam", "drawn")
    printed = subprocess.run(
        [sys.executable, "train.py"], cwd=program, check=True, capture_output=True, text=True
    ).stdout
    # As fast under all seeds, and the same: only the way is another.
    change(
        program,
        "    time.sleep(1)\n    return sum(rows)",
        f"    total = {printed.strip()}\n    return total if sum(rows) == total else sum(rows)",
    )
    done, proof = prove(program, "--against", "HEAD", "--budget", "900s", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.INCONCLUSIVE, "inconclusive"), done.stderr
    assert "train.py:7 runs under" in proof["reason"]


def test_a_slower_program_is_not_faster(program):
    change(program, "WAIT_S = 2.0", "WAIT_S = 0.0")
    other = program.parent / "other"
    other.mkdir()
    (other / "train.py").write_bytes((program / "train.py").read_bytes())
    git(program, "checkout", "-q", "train.py")
    done, proof = prove(program, "--against", str(other), "--budget", "900s", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.NOT_FASTER, "not-faster"), done.stderr


def test_too_small_a_budget_is_inconclusive_and_says_how_much_more_it_takes(program):
    change(program, "WAIT_S = 2.0", "WAIT_S = 0.0")
    done, proof = prove(program, "--against", "HEAD", "--budget", "10s", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.INCONCLUSIVE, "inconclusive"), done.stderr
    assert proof["more_s"] > 0


def test_a_clock_that_is_replaced_is_refused_without_a_run(program):
    change(program, "WAIT_S = 2.0", "time.perf_counter = lambda: 0.0")
    done, proof = prove(program, "--against", "HEAD", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.REFUSED_CHANGE, "refused"), done.stderr
    assert proof["first_difference"]["place"] == "train.py:4"


def test_fewer_steps_of_a_training_that_prints_nothing_are_seen(program):
    (program / "train.py").write_text(textwrap.dedent(TRAINING).lstrip())
    (program.parent / "before").mkdir()
    (program.parent / "before" / "train.py").write_bytes((program / "train.py").read_bytes())
    change(program, "STEPS = 20", "STEPS = 16")
    done, proof = prove(program, "--against", "../before", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.DIFFERENT, "different"), done.stderr
    assert proof["first_difference"] == {"kind": "counts", "place": "optimizer steps", "detail": "16 instead of 20"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("optimizer", "before", "after", "place", "detail"),
    [
        (
            "torch.optim.SGD",
            "batch_size=8)",
            "batch_size=8, drop_last=True)",
            "optimizer steps",
            "30 instead of 40",
        ),
        (
            "Descent",
            '        torch.save(model.state_dict(), "model.pt")',
            '    torch.save(model.state_dict(), "model.pt")',
            "model.pt",
            "saved once instead of 10 times",
        ),
        (
            "Descent",
            "    main()",
            "    try:\n        main()\n    finally:\n        atexit._run_exitfuncs()\n        os._exit(0)",
            "exit code",
            "0 instead of 1",
        ),
        (
            "Descent",
            '"model.pt")',
            'os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.pt"))',
            "model.pt",
            "is not written",
        ),
        (
            "Descent",
            '        torch.save(model.state_dict(), "model.pt")',
            "        try:\n"
            '            torch.save(model.state_dict(), "model.pt")\n'
            "        except RuntimeError:  # what torch raises where the disk fills up in the middle\n"
            "            pass",
            "exit code",
            "0 instead of 1",
        ),
    ],
)
def test_what_is_the_same_on_these_data_and_to_the_end_alone_is_different(
    program, optimizer, before, after, place, detail
):
    (program / "train.py").write_text(textwrap.dedent(EPOCHS).lstrip().replace("OPTIMIZER", optimizer))
    git(program, "add", ".")
    git(program, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "second")
    change(program, "WAIT_S = 0.06", "WAIT_S = 0.0")
    change(program, before, after)
    done, proof = prove(program, "--against", "HEAD", "--budget", "900s", "train.py")
    assert (done.returncode, proof["verdict"]) == (Exit.DIFFERENT, "different"), done.stderr
    assert proof["first_difference"]["detail"] == detail, proof["reason"]
    assert proof["first_difference"]["place"].endswith(place)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.py"], "say what to judge"),
        (["--against", "nowhere", "train.py"], "no revision and no folder"),
        (["--patch", "absent.patch", "train.py"], "no such file"),
        (["--against", "HEAD", "absent.py"], "no such file: absent.py"),
    ],
)
def test_bad_input_is_told_in_a_line(program, words, message):
    done, _ = prove(program, *words)
    assert done.returncode == Exit.REFUSED and message in done.stderr and "Traceback" not in done.stderr
