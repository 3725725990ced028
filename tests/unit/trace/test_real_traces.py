"""Traces recorded by others on real devices, where their folder is at hand: the metrics that its index gives."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from unstall.trace.library import library
from unstall.trace.readers import read
from unstall.trace.timeline import DeviceKind, HostKind


@pytest.fixture(scope="module")
def index(real_traces):
    return {entry["file"]: entry for entry in json.loads((real_traces / "index.json").read_bytes())}


def test_every_trace_has_the_events_and_kernels_it_should(real_traces, index):
    for name, entry in index.items():
        for timeline in read(real_traces / name):
            if entry["events"] is not None:
                assert timeline.events == entry["events"], name
                kernels = np.isin(timeline.device.kind, (DeviceKind.KERNEL, DeviceKind.COLLECTIVE)).sum()
                assert kernels == entry["kernels"], name
            if entry["gpu"]:
                assert timeline.devices[0].name == entry["gpu"], name
            assert not timeline.problems, name


def test_steps_ranks_and_loaders(real_traces):
    (t,) = read(real_traces / "resnet50_workers0_v100.json.gz")
    assert t.steps.number.tolist() == [5, 6, 7, 8, 9, 10]
    assert (t.host.kind == HostKind.LOADER).sum() == 6
    assert (t.launch >= 0).all()
    (t,) = read(real_traces / "dlrm_rank3_v100.json.gz")
    assert (t.rank, t.world_size) == (3, 8)
    (t,) = read(real_traces / "cpu_only_gloo.json.gz")
    assert (t.rank, t.world_size, len(t.device)) == (34, 300, 0)


def test_two_ranks_in_one_report(real_traces):
    first, second = read(real_traces / "nsys_mfu_before.sqlite")
    assert (first.rank, second.rank) == (0, 1)
    assert set(first.device.device.tolist()) == {0}
    assert set(second.device.device.tolist()) == {1}
    for t in (first, second):
        assert (t.device.kind == DeviceKind.COLLECTIVE).sum() == 33
        assert (t.launch >= 0).mean() > 0.99


def test_both_scanners_read_the_same(real_traces, monkeypatch):
    if not library():
        pytest.skip("the library in C was not built")
    for name in (
        "dlrm_rank1_v100.json.gz",
        "part_bs4_a100.json.gz",
        "vit_small_mi300.json.gz",
        "huge_integers.json.gz",
    ):
        (fast,) = read(real_traces / name)
        monkeypatch.setitem(sys.modules, "unstall.trace._scan", None)
        (slow,) = read(real_traces / name)
        monkeypatch.undo()
        assert (fast.names, fast.threads, fast.problems) == (slow.names, slow.threads, slow.problems)
        for table in ("host", "device", "waits"):
            for column in vars(getattr(fast, table)):
                if column != "inputs":
                    assert (getattr(getattr(fast, table), column) == getattr(getattr(slow, table), column)).all()
        shapes = [[str(t.inputs(n)) for n in t.host.inputs.tolist()] for t in (fast, slow)]
        assert shapes[0] == shapes[1]
        assert (fast.parent == slow.parent).all()
