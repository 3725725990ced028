"""Calls in a thread: what is written, and that the program they are written into does the same."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from unstall.optimize.deferring import examine
from unstall.optimize.remedies.background_callbacks import predict, with_later_calls
from unstall.optimize.sources import SourceError, Sources

PROGRAM = """
import pathlib
import tempfile

import torch


class Logger:
    def __init__(self, path):
        self.file = open(path, "w")

    def log(self, step, model, loss, more=()):
        assert not torch.is_grad_enabled() or step < 8
        gradients = [parameter.grad.sum().item() for parameter in model.parameters()]
        self.file.write(f"{step} {loss.item()} {gradients} {model.weight.sum().item()} {more}\\n")

    def close(self):
        self.file.close()


def train(logger, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for step in range(12):
        loss = model(torch.ones(2, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(step)
        with torch.set_grad_enabled(step < 8):
            logger.log(step, model, loss, more=seen)
        if step == 10:
            return


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log.txt"
        logger = Logger(path)
        train(logger, torch.nn.Linear(3, 2))
        logger.close()
        print(path.read_text())


if __name__ == "__main__":
    main()
"""


def changed_program(tmp_path, text, name="log", calls=("logger.log(", "train(logger, torch")):
    path = tmp_path / "train.py"
    path.write_text(text)
    lines = text.splitlines()

    def number(part):
        return next(n for n, line in enumerate(lines, 1) if part in line)

    deferrable = examine(text, name, number(f"def {name}("))
    sources = with_later_calls(Sources(), path, deferrable, [(path, number(one)) for one in reversed(calls)])
    return sources.bytes_of(path).decode()


def run(tmp_path, text):
    path = tmp_path / "run.py"
    path.write_text(text)
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout, done.stderr


def test_the_changed_program_writes_the_same_and_waits_where_it_must(tmp_path):
    pytest.importorskip("torch")
    changed = changed_program(tmp_path, PROGRAM)
    assert '@_background.later("self")\n    def log(self' in changed
    assert "def close(self):\n        _background.wait()\n" in changed
    assert "with tempfile.TemporaryDirectory() as folder, _background:" in changed
    assert "with torch.set_grad_enabled(step < 8):" in changed
    assert "            _background.wait()\n            return\n" in changed
    before, after = run(tmp_path, PROGRAM), run(tmp_path, changed)
    assert before[0] == 0 and before[1].count("\n") == 12 and after == before


FAILING = """
import torch


def log(path, step):
    with open(path, "a") as file:
        file.write(f"{step}\\n")


for step in range(20):
    log("no/such/folder/log.txt" if step > 2 else "log.txt", step)
    torch.ones(1)
print("done")
"""


def test_an_error_in_the_thread_ends_the_program_as_it_would_have(tmp_path):
    pytest.importorskip("torch")
    changed = changed_program(tmp_path, FAILING, calls=('log("no/',))
    code, out, err = run(tmp_path, changed)
    assert code == 1 and "FileNotFoundError" in err and "done" not in out
    assert (tmp_path / "log.txt").read_text() == "0\n1\n2\n"


def test_nothing_is_lost_when_the_program_exits_in_the_middle(tmp_path):
    pytest.importorskip("torch")
    text = FAILING.replace('"no/such/folder/log.txt" if step > 2 else "log.txt"', '"log.txt"')
    text = text.replace("torch.ones(1)", "if step == 9:\n        raise SystemExit(3)")
    changed = changed_program(tmp_path, text, calls=('log("log.txt"',))
    code, _, _ = run(tmp_path, changed)
    assert code == 3 and (tmp_path / "log.txt").read_text().split() == [str(n) for n in range(10)]


def test_a_file_that_uses_the_names_otherwise_is_left_alone(tmp_path):
    with pytest.raises(SourceError, match="copy"):
        changed_program(tmp_path, "from copy import copy\n" + textwrap.dedent(FAILING), calls=('log("no/',))


@pytest.mark.parametrize(("share", "least"), [(0.0, 1.0), (0.5, 1.7), (0.95, 1.04)])
def test_the_thread_may_become_what_takes_longest(share, least):
    assert least <= predict(share) <= 2
