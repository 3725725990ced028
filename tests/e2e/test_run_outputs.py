"""What the options of ``unstall run`` do: the files they write, the steps they stop at, memray."""

import json
import signal
import sys

import pytest
from programs import SLOW_DATASET

TRAINING = """
    import torch
    from tiny import training


    def allocate(kept):
        kept.append(torch.zeros(250_000))


    kept = []


    def main():
        for step, loss in training(150, pause=0.008):
            if step % 10 == 0:
                allocate(kept)
        print("finished")


    main()
"""


def test_stop_after_so_many_steps(workspace):
    """With workers, which end too, and without a word from the program: it is not told of an error."""
    workspace.write("program.py", SLOW_DATASET.replace("items=600", "items=100_000"))
    result = workspace.watched("program.py", "2", "fork", options=["--steps", "30"])
    assert result.status == 0
    assert result.report["run"]["exit_code"] is None
    assert result.steps == 30
    assert 30 <= len(result.out.splitlines()) < 25_000
    assert "Traceback" not in result.err


def test_stopping_runs_the_programs_own_cleaning_up(workspace):
    workspace.write(
        "program.py",
        """
        import atexit

        from tiny import training

        atexit.register(print, "at exit")
        try:
            for step, loss in training(100_000):
                try:
                    pass
                except Exception:
                    print("an error")
            print("finished")
        finally:
            print("finally")
        """,
    )
    result = workspace.watched("program.py", options=["--steps", "20", "--no-sampling"])
    assert result.out == "finally\nat exit\n"
    assert (result.status, result.report["run"]["exit_code"], result.steps) == (0, None, 20)


@pytest.mark.slow
def test_a_program_that_will_not_stop_is_stopped(workspace):
    workspace.write(
        "program.py",
        """
        from tiny import nn, torch

        model = nn.Linear(2, 2)
        while True:
            try:
                model(torch.ones(1, 2)).sum().backward()
            except BaseException:
                print("not me", flush=True)
        """,
    )
    result = workspace.watched("program.py", options=["--steps", "20", "--no-sampling"])
    assert "not me" in result.out
    assert (result.status, result.report["run"]["exit_code"], result.steps) == (0, None, 20)


def test_fewer_steps_than_asked_for(workspace):
    workspace.write("program.py", TRAINING)
    result = workspace.watched("program.py", options=["--steps", "100000"])
    assert (result.status, result.out) == (0, "finished\n")
    assert result.report["run"]["exit_code"] == 0
    assert 1 <= result.steps < 150


def test_every_kind_of_file(workspace):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    workspace.write("program.py", TRAINING)
    trace, page, scalars = (workspace.beside / name for name in ("trace.json", "page.md", "scalars"))
    result = workspace.watched(
        "program.py", options=["--trace", trace, "--markdown", page, "--tensorboard", scalars, "--modules", "--nvtx"]
    )
    assert (result.status, result.out) == (0, "finished\n")
    events = json.loads(trace.read_text())["traceEvents"]
    names = {event["name"] for event in events}
    assert {"forward", "backward"} <= names
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    assert page.read_text().startswith("#")
    assert result.report["verdict"]["pattern"] in page.read_text()
    assert list(scalars.glob("events.out.tfevents.*"))
    read = EventAccumulator(str(scalars))
    read.Reload()
    assert read.Tags()["scalars"]
    modules = {module["name"]: module for module in result.report["modules"]}
    assert {"0", "1", "2"} <= set(modules)
    assert modules["0"]["type"] == "Linear"
    assert "Modules" in result.err


def test_a_compressed_trace(workspace):
    import gzip

    workspace.write("program.py", TRAINING)
    trace = workspace.beside / "trace.json.gz"
    workspace.watched("program.py", options=["--trace", trace])
    assert json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]


def test_memory(workspace):
    pytest.importorskip("memray")
    workspace.write("program.py", TRAINING)
    result = workspace.watched("program.py", options=["--memory"])
    assert (result.status, result.out) == (0, "finished\n")
    peak, _, growth = result.err.partition("memory at its peak")[2].partition("memory that is never freed")
    assert "allocate  program.py:6" in peak
    assert "allocate  program.py:6" in growth


def test_memray_that_the_programs_python_does_not_have(workspace):
    workspace.write("elsewhere/memray.py", "raise ImportError('broken')")
    workspace.write("program.py", TRAINING)
    environment = {"PYTHONPATH": str(workspace.folder / "elsewhere")}
    result = workspace.watched("program.py", options=["--memory"], env=environment)
    assert (result.status, result.out) == (0, "finished\n")
    assert "--memory needs memray" in result.notes
    assert result.steps >= 1


def test_without_samples(workspace):
    workspace.write("program.py", TRAINING)
    result = workspace.watched("program.py", options=["--no-sampling"])
    assert (result.status, result.out) == (0, "finished\n")
    assert result.steps >= 1
    assert result.report["hotspots"] == []


WITHOUT_PY_SPY = """
    import shutil

    shutil.which = lambda *_, **__: None
    from unstall.cli.main import main

    main()
"""


def test_where_py_spy_is_missing_the_program_samples_itself(workspace):
    workspace.write("program.py", SLOW_DATASET)
    wrapper = workspace.write("../wrapper.py", WITHOUT_PY_SPY)
    result = workspace.watched("program.py", unstall=[sys.executable, wrapper, "run"])
    assert result.status == 0
    assert "py-spy is not installed" in result.notes
    assert "sampled itself" in result.notes
    assert result.report["verdict"]["confidence"] != "high"
    assert result.report["verdict"]["culprit"]["function"] == "Slow.__getitem__"


def test_standard_output_that_nobody_reads(workspace):
    """``unstall run train.py | head -1``: the program ends as it would have in that pipe."""
    workspace.write("program.py", "import sys\nfor i in range(10**6):\n    print(i)\n")
    command = '"$@" | head -n 1; exit "${PIPESTATUS[0]}"'
    plain = workspace.start(["bash", "-c", command, "bash", sys.executable, "program.py"]).result()
    watched = workspace.watched("program.py", wrapper=["bash", "-c", command, "bash"])
    assert (watched.status, watched.out) == (plain.status, plain.out)
    assert "BrokenPipeError" in watched.err
    assert watched.status != -signal.SIGPIPE
