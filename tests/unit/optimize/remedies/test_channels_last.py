"""Models of convolutions, and where their memory format is written."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_measurement

from unstall.optimize.observed import ObservedOptimizer, RuntimeFacts
from unstall.optimize.remedies import channels_last
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.places import CallSite
from unstall.records.model import ModuleMeasurement


def propose(tmp_path, source, line, *layers):
    """The proposal for a model of these layers, (type, seconds), whose optimizer is made on a line."""
    script = tmp_path / "train.py"
    script.write_text(source)
    modules = [ModuleMeasurement(kind, kind, "net.py", 1, 1.0, own_s, own_s, 0) for kind, own_s in layers]
    measurement = make_measurement(phases={"forward": 0.5, "backward": 0.5}, modules=modules)
    runtime = RuntimeFacts(optimizers=(ObservedOptimizer(type="Adam", call=CallSite(script, line, "<module>")),))
    (found,) = channels_last.REMEDY.propose(
        make_context(tmp_path, script=script, measurement=measurement, runtime=runtime)
    )
    return found, found.sources.bytes_of(script).decode()


def test_the_weights_have_their_channels_last_before_the_optimizer_is_made(tmp_path):
    source = "import torch as t\nnet = Net()\nopt = t.optim.Adam(net.parameters())\n"
    found, changed = propose(tmp_path, source, 3, ("Conv2d", 0.3), ("Linear", 0.1))
    assert changed == source.replace("opt =", "net.to(memory_format=t.channels_last)\nopt =")
    assert found.because == "two-dimensional convolutions take 75 % of the step" and found.predicted > 1.1


def test_torch_is_imported_where_only_parts_of_it_are(tmp_path):
    source = "from torch.optim import Adam\n\nopt = Adam(net.parameters())\n"
    _, changed = propose(tmp_path, source, 3, ("Conv2d", 0.3))
    assert "import torch\n" in changed and "net.to(memory_format=torch.channels_last)\nopt =" in changed


@pytest.mark.parametrize("layers", [(), [("Conv1d", 0.3)], [("Linear", 0.3), ("Conv2d", 0.01)]])
def test_a_model_of_other_layers_has_no_channels_to_move(tmp_path, layers):
    with pytest.raises(NotApplicable, match=r"two-dimensional convolutions take [03] % of the step"):
        propose(tmp_path, "opt = Adam(net.parameters())\n", 1, *layers)
