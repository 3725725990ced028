"""Loader workers leave the main process its cores, and do what they did at their start."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from unstall.optimize.case import Call, Case, Made, Probe, Unfit
from unstall.optimize.remedies import worker_affinity
from unstall.optimize.sources import Sources

SOURCE = """import torch
from torch.utils.data import DataLoader


def main(dataset):
    return DataLoader(dataset, batch_size=2, num_workers=2)  # for training
"""

needs_two_cores = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one core, or no affinity"
)


def case_of(
    tmp_path, source=SOURCE, *, workers=2, threads=1, cores=2, device="cpu", run_delay=0.3, other_cores=0.0, ranks=(),
    service_s=0.005,
) -> Case:  # fmt: skip
    """A program of steps of 10 ms, none of them spent waiting for a batch, with workers that use 0.5 cores."""
    path = tmp_path / "train.py"
    path.write_text(source)
    loader = SimpleNamespace(
        service_s=service_s, service_blocked_s=0.0, batches_per_step=1.0, start_s=0.0, batch_size=2, workers=workers,
        dataset="Photos",
    )  # fmt: skip
    measurement = SimpleNamespace(
        loader=loader, step=SimpleNamespace(mean=0.010), phase_s=lambda name: 0.0, run_delay=run_delay,
        team_delay_s=0.0, worker_cpu_s=0.005, other_cores=other_cores, ranks=list(ranks),
        model=SimpleNamespace(device=device, threads=threads),
    )  # fmt: skip
    line = next((n for n, text in enumerate(source.splitlines(), 1) if "DataLoader(" in text), 6)
    facts = {"map_style": True, "num_workers": workers, "batch_size": 2, "dataset": "Photos"}
    probe = Probe(loaders=(Made(Call(path, line, "main"), facts),), threads=threads)
    program = SimpleNamespace(owns=lambda one: one == path, script=path)
    return Case(program, None, measurement, Sources(), probe, cores)  # type: ignore[arg-type]


def proposed(case):
    answer = worker_affinity.propose(case)
    assert not isinstance(answer, Unfit), answer
    (proposal,) = answer
    return proposal, proposal.sources.text(case.program.script)


def test_the_workers_are_told_which_cores_to_leave(tmp_path):
    proposal, text = proposed(case_of(tmp_path))
    assert (
        "return DataLoader(dataset, batch_size=2, num_workers=2, "
        "worker_init_fn=functools.partial(_leave_cores, 1, None))  # for training" in text
    )
    assert text.startswith("import functools\nimport os\nimport torch\n")
    assert proposal.exactness == "exact"
    assert proposal.predicted == pytest.approx(10 / 8.5)  # half of the 3 ms that the main thread waits


def test_four_cores_and_what_was_done_before(tmp_path):
    source = SOURCE.replace("num_workers=2", "num_workers=2, worker_init_fn=lambda worker: seed(worker)")
    _, text = proposed(case_of(tmp_path, source, threads=3, cores=4))
    assert "worker_init_fn=functools.partial(_leave_cores, 3, lambda worker: seed(worker))" in text
    _, text = proposed(case_of(tmp_path, threads=4, cores=4, device="cuda:0"))
    assert "functools.partial(_leave_cores, 2, None)" in text


def test_workers_that_need_more_cores_than_are_left_promise_no_gain(tmp_path):
    proposal, _ = proposed(case_of(tmp_path, service_s=0.018))
    assert proposal.predicted < 1


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"workers": 0}, "no loader workers"),
        ({"threads": 2}, "take all 2 cores"),
        ({"cores": 1}, "take all 1 cores"),
        ({"run_delay": 0.0}, "waits 0 %"),
        ({"run_delay": None}, "waits 0 %"),
        ({"run_delay": 0.1, "other_cores": 4.5}, "waits 1 %"),
        ({"ranks": (1, 2)}, "ranks"),
        ({"source": SOURCE.replace("num_workers=2", "**options")}, "cannot be told"),
        ({"source": SOURCE.replace("DataLoader(", "make_loader(")}, "cannot be found"),
        ({"source": SOURCE.replace("import torch\n", "import torch\n\nos = 1\n")}, "uses the name os"),
    ],
)
def test_not_where_there_is_nothing_to_gain_or_it_cannot_be_told(tmp_path, how, why):
    answer = worker_affinity.propose(case_of(tmp_path, **how))
    assert isinstance(answer, Unfit) and why in answer.reason


@needs_two_cores
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_run_there_and_the_main_process_where_it_was(tmp_path, monkeypatch, context):
    pytest.importorskip("torch")
    source = f"""import os

from torch.utils.data import DataLoader


class Where:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return [sorted(os.sched_getaffinity(0)), started]


started = None


def note(worker):
    global started
    started = worker


def loader():
    return DataLoader(Where(), batch_size=None, num_workers=2, worker_init_fn=note, multiprocessing_context="{context}")
"""
    _, text = proposed(case_of(tmp_path, source))
    (tmp_path / f"where_{context}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(f"where_{context}")
    cores = sorted(os.sched_getaffinity(0))
    assert list(module.loader()) == [[cores[1:], 0], [cores[1:], 1]] * 2
    assert sorted(os.sched_getaffinity(0)) == cores


@needs_two_cores
def test_on_a_machine_with_fewer_cores_they_stay_where_they_are(monkeypatch):
    space: dict = {"os": os}
    exec(worker_affinity.DEFINITION, space)
    told = []
    before = os.sched_getaffinity(0)
    space["_leave_cores"](len(before), told.append, 7)
    assert told == [7] and os.sched_getaffinity(0) == before
    monkeypatch.delattr(os, "sched_getaffinity")
    space["_leave_cores"](1, None, 7)
