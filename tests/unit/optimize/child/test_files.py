"""The files a program writes are noted, and calls in a thread that see too much write something else when they are late."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest

from unstall.optimize.remedies.background_callbacks import DEFINITIONS, IMPORTS

pytest.importorskip("torch")

PROGRAM = """
import sys
from unstall.optimize import child

folder, when, shared = sys.argv[1:]
plan = {"files": {"deferred": when}, "clock": {"kind": "optimizer", "warmup": 0, "steps": 9}}
child.install(plan, folder)
IMPORTS
DEFINITIONS

@_background.later(*filter(None, [shared]))
def log(file, state):
    file.write(f"{state[0]}\\n")
    file.flush()


@_background.later("file")
def plain(file, state):
    log(file, state)


weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
state = [0]
with open("log.txt", "w") as file, open("still.txt", "w") as still:
    still.write("still")
    still.flush()
    for step in range(100):
        state[0] = step
        (log if shared else plain)(file, state)
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("when", "shared", "same"),
    [("at once", "state", True), ("late", "state", False), ("at once", "", True), ("late", "", True)],
)
def test_a_call_that_sees_what_came_after_it_is_found_out(tmp_path, when, shared, same):
    text = PROGRAM.replace("IMPORTS", "".join(f"import {name}\n" for name in IMPORTS))
    text = text.replace("DEFINITIONS", "\n\n".join(DEFINITIONS))
    if shared:
        text = text.replace("filter(None, [shared])", '["file", shared]')
    program, folder, work = tmp_path / "program.py", tmp_path / "folder", tmp_path / "work"
    program.write_text(text)
    folder.mkdir()
    work.mkdir()
    done = subprocess.run(
        [sys.executable, str(program), str(folder), when, shared], cwd=work, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    written = dict(json.loads((folder / "written.json").read_text()))
    expected = "".join(f"{step}\n" for step in range(10)).encode()
    assert set(written) == {"log.txt", "still.txt"}
    assert (written["log.txt"] == hashlib.blake2b(expected, digest_size=16).hexdigest()) is same
