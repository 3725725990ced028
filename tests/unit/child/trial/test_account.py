"""The account of a whole run, and what is observed of one, in a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

from unstall.benchmark.launcher import BOOTSTRAP
from unstall.child.trial.account import shared_bytes
from unstall.optimize.equivalence import read

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    def main():
        torch.manual_seed(0)
        data = TensorDataset(torch.randn(12, 4), torch.randint(0, 2, (12,)))
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in DataLoader(data, batch_size=4):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            model(data.tensors[0])

    main()
"""


def run_under(plan, program, tmp_path, **streams):
    """Run a program under a plan: how it ended, and the folder that the child side wrote to."""
    script, folder = tmp_path / "program.py", tmp_path / "run"
    script.write_text(textwrap.dedent(program))
    folder.mkdir()
    env = {
        **os.environ,
        "PYTHONPATH": str(BOOTSTRAP),
        "UNSTALL_RUN_DIR": str(folder),
        "UNSTALL_CHILD": "unstall.child.trial",
        "UNSTALL_PLAN": json.dumps(plan),
    }
    streams = streams or {"capture_output": True}
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=env, timeout=120, text=True, **streams)
    assert not list(folder.glob("*error*")) and not list(folder.glob("complaints*")), list(folder.iterdir())
    return done, folder


@pytest.mark.timeout(240)
def test_steps_calls_batches_and_the_state_at_the_end_are_written_down(tmp_path):
    plan = {
        "seed": {"seed": 7},
        "clock": {"kind": "optimizer", "warmup": 0, "steps": None, "seconds": None},
        "observe": {"whole": True},
        "account": {},
    }
    done, folder = run_under(plan, PROGRAM, tmp_path)
    assert done.returncode == 0, done.stderr
    account = json.loads((folder / "account.json").read_text())
    assert account["steps"] == 3
    assert [call[:3] for call in account["calls"]] == [["train", 4, "float32"]] * 3 + [["eval", 12, "float32"]]
    assert [samples for samples, _ in account["batches"]] == [4, 4, 4]
    assert account["batches_alive"] == [[6, 2]], "of three of two tensors, the last"
    assert set(account["random"]) == {"python", "numpy", "torch"}
    observed = list(read(folder / "observed.bin"))
    assert {tensor.what.split(".")[0] for tensor in observed} == {"input", "output", "loss", "weights", "state"}
    assert any(tensor.what.startswith("state.0.0.exp_avg") for tensor in observed)
    assert len(account["memory"]) == 4 and min(account["memory"]) > 1e7


PILING = """
    import os, subprocess, tempfile, threading, torch
    from torch import nn

    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters())
    kept = []
    spool = tempfile.TemporaryFile(buffering=0)
    for step in range(5):
        spool.write(b"all")
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        kept.append((open(os.devnull), subprocess.Popen(["sleep", "60"])))
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    for _, process in kept:
        process.kill()
        process.wait()
"""


@pytest.mark.timeout(240)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as Linux tells")
def test_open_files_and_children_are_counted_at_each_step(tmp_path):
    done, folder = run_under({"account": {}}, PILING, tmp_path)
    assert done.returncode == 0, done.stderr
    account = json.loads((folder / "account.json").read_text())
    assert [count - account["processes"][1] for count in account["processes"][1:]] == [0, 1, 2, 3, 4]
    assert [count - account["descriptors"][1] for count in account["descriptors"][1:]] == [0, 1, 2, 3, 4]
    assert [count - account["threads"][1] for count in account["threads"][1:]] == [0, 1, 2, 3, 4]
    assert account["most_threads"] == 1 + 5, "with the main one"
    assert [size - account["unnamed"][1] for size in account["unnamed"][1:]] == [0, 3, 6, 9, 12]
    assert set(account["nice"]) == {os.getpriority(os.PRIO_PROCESS, 0)}


@pytest.mark.timeout(240)
def test_what_is_printed_into_a_file_without_a_name_is_none_of_the_programs(tmp_path):
    program = """
    import sys
    import torch

    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        print("progress", file=sys.stderr, flush=True)
    """
    with tempfile.TemporaryFile() as errors:
        _, folder = run_under({"account": {}}, program, tmp_path, stderr=errors)
        assert errors.seek(0, os.SEEK_END) == 5 * len("progress\n")
    assert set(json.loads((folder / "account.json").read_text())["unnamed"]) == {0}


def test_what_lies_in_shared_memory_is_counted(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "1").write_bytes(b"12345")
    (tmp_path / "semaphore").write_bytes(b"1")
    assert shared_bytes(str(tmp_path)) == 6
    assert shared_bytes(str(tmp_path / "none")) == 0


@pytest.mark.timeout(240)
def test_the_call_of_a_model_that_is_asked_for_fails(tmp_path):
    done, _ = run_under(
        {"fault": {"call": 3, "mode": "train", "kind": "error"}},
        PROGRAM.replace("loss.backward()", "print('went on')"),
        tmp_path,
    )
    assert done.returncode == 1 and done.stdout.count("went on") == 2
    assert "to see how the program ends" in done.stderr.splitlines()[-1]


@pytest.mark.timeout(240)
def test_an_interrupt_ends_the_program_as_ctrl_c_does(tmp_path):
    done, _ = run_under({"fault": {"call": 2, "mode": "train", "kind": "interrupt"}}, PROGRAM, tmp_path)
    assert done.returncode == -signal.SIGINT and done.stderr.endswith("KeyboardInterrupt\n")


@pytest.mark.timeout(240)
def test_a_disk_has_no_room_for_the_next_file(tmp_path):
    saving = """
            for name in ("first.pt", "second.pt"):
                try:
                    torch.save(model.state_dict(), name)
                    print(name)
                except OSError as error:
                    print(error.strerror)
    """
    program = PROGRAM.replace("            optimizer.step()\n", "            optimizer.step()\n" + saving.rstrip(" "))
    done, _ = run_under({"fault": {"call": 3, "mode": "train", "kind": "full"}}, program, tmp_path)
    refused = "No space left on device"
    assert done.stdout.splitlines() == ["first.pt", "second.pt"] * 2 + [refused, "second.pt"], done.stderr


ODD = """
    import os, signal
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for step in range(3):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    with torch.no_grad():
        model.weight.round_(decimals=2)
"""


@pytest.mark.timeout(240)
def test_signals_cores_and_parameters_that_are_changed_at_the_end_are_noted(tmp_path):
    accounts = []
    for name, program in (("odd", ODD), ("plain", PROGRAM)):
        (tmp_path / name).mkdir()
        done, folder = run_under({"account": {}}, program, tmp_path / name)
        assert done.returncode == 0, done.stderr
        accounts.append(json.loads((folder / "account.json").read_text()))
    odd, plain = accounts
    assert (odd["unsettled"], plain["unsettled"]) == (1, 0)
    assert set(odd["signals"]) != set(plain["signals"]) and set(odd["cores"]) == {len(os.sched_getaffinity(0))}
