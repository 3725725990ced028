"""A trace of the torch that is installed, recorded here."""

from __future__ import annotations

import pytest

from unstall.trace.readers import read
from unstall.trace.timeline import HostKind


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    torch = pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("recorded") / "rank2.json.gz"
    loader = torch.utils.data.DataLoader(torch.arange(48.0).reshape(12, 4), batch_size=4)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    cpu = [torch.profiler.ProfilerActivity.CPU]
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=2)
    with torch.profiler.profile(
        activities=cpu,
        schedule=schedule,
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        for batch in loader:
            with torch.profiler.record_function("the model"):
                model(batch).sum().backward()
            optimizer.step()
            profiler.step()
    (timeline,) = read(path)
    return timeline


def test_nothing_is_lost(recorded):
    assert not recorded.problems
    assert len(recorded.device) == 0
    assert recorded.rank == 2


def test_steps_annotations_and_loader(recorded):
    kinds = {recorded.names[n]: HostKind(k) for n, k in zip(recorded.host.name.tolist(), recorded.host.kind.tolist())}
    assert kinds["the model"] == HostKind.ANNOTATION
    assert kinds["Optimizer.step#SGD.step"] == HostKind.ANNOTATION
    assert kinds["aten::addmm"] == HostKind.OPERATOR
    assert kinds["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == HostKind.LOADER
    assert HostKind.PYTHON in kinds.values()
    assert recorded.steps.number.tolist() == [1, 2]


def test_operators_are_inside_the_annotation_and_know_their_shapes(recorded):
    host = recorded.host
    row = next(row for row, n in enumerate(host.name.tolist()) if recorded.names[n] == "aten::addmm")
    assert recorded.inputs(int(host.inputs[row])).dims[1] == [4, 4]
    around = []
    while (row := int(recorded.parent[row])) >= 0:
        around.append(recorded.names[host.name[row]])
    assert "the model" in around
    assert any(name.startswith("nn.Module: Linear") for name in around)


def test_a_backward_node_shares_its_number_with_the_forward(recorded):
    host = recorded.host
    numbered = {}
    for row in range(len(host)):
        if host.sequence[row] >= 0:
            numbered.setdefault(int(host.sequence[row]), set()).add(recorded.names[host.name[row]])
    assert any(
        {"aten::addmm", "AddmmBackward0"} <= {n.rpartition(": ")[2] for n in names} for names in numbered.values()
    )
