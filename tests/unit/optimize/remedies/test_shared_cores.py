"""Workers and fewer threads at once, where they would share the cores."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unstall.optimize.case import Call, Case, Made, Probe, Unfit
from unstall.optimize.remedies import shared_cores
from unstall.optimize.sources import Sources

SOURCE = """import torch
from torch.utils.data import DataLoader


def main(dataset):
    loader = DataLoader(dataset, batch_size=8)
"""


def case_of(tmp_path, *, threads: int, cores: int, workers: int = 0, device: str = "cpu") -> Case:
    """A program whose batches take 9 ms of a step of 10, in the main process."""
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    loader = SimpleNamespace(
        service_s=0.009, service_blocked_s=0.0, batches_per_step=1.0, start_s=0.0, batch_size=8, workers=workers,
        dataset="Photos",
    )  # fmt: skip
    measurement = SimpleNamespace(
        loader=loader, step=SimpleNamespace(mean=0.010), phase_s=lambda name: 0.009,
        model=SimpleNamespace(device=device, threads=threads),
    )  # fmt: skip
    facts = {"map_style": True, "num_workers": workers, "batch_size": 8, "dataset": "Photos"}
    probe = Probe(loaders=(Made(Call(path, 6, "main"), facts),), threads=threads)
    program = SimpleNamespace(owns=lambda one: one == path, script=path)
    return Case(program, None, measurement, Sources(), probe, cores)  # type: ignore[arg-type]


def test_workers_and_threads_divide_the_cores(tmp_path):
    case = case_of(tmp_path, threads=2, cores=2)
    proposals = shared_cores.propose(case)
    assert not isinstance(proposals, Unfit)
    best = proposals[0]
    text = best.sources.text(tmp_path / "train.py")
    assert "num_workers=2" in text and "persistent_workers=True" in text
    assert "\ntorch.set_num_threads(1)\n" in text
    assert best.exactness == "close"
    assert best.runtime == {"loader": {"num_workers": 2, "persistent_workers": True}, "threads": 1}
    assert len({one.id for one in proposals}) == len(proposals)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"threads": 1, "cores": 2}, "cores of their own"),
        ({"threads": 2, "cores": 2, "device": "cuda:0"}, "GPU"),
    ],
)
def test_not_where_there_is_nothing_to_share(tmp_path, how, why):
    answer = shared_cores.propose(case_of(tmp_path, **how))
    assert isinstance(answer, Unfit) and why in answer.reason
