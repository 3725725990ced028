"""Which optimizers are to take a fused form, and where it is written."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_measurement

from unstall.optimize.observed import ObservedOptimizer, RuntimeFacts
from unstall.optimize.remedies import fused_optimizer
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.places import CallSite

GAN = """from torch import optim
def make(g, d):
    return optim.Adam(g.parameters(), lr=1e-3), optim.Adam(d.parameters(), lr=4e-3)
slow = optim.SGD(e.parameters(), lr=0.1)
"""
SPANS = {"generator": (3, 3, 11, 46), "discriminator": (3, 3, 48, 83), "encoder": (4, 4, 7, 40)}


def made(script, line, span=None, **facts):
    facts = {"type": "Adam", "module": "torch.optim.adam", **facts}
    return ObservedOptimizer(call=CallSite(script, line, "make", span), **facts)


def propose(tmp_path, *optimizers, script=None):
    runtime = RuntimeFacts(optimizers=optimizers)
    measurement = make_measurement(phases={"optimizer": 0.5, "forward": 0.5})
    found = fused_optimizer.REMEDY.propose(
        make_context(tmp_path, script=script, runtime=runtime, measurement=measurement)
    )
    return {proposal.key: proposal for proposal in found}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "gan.py"
    path.write_text(GAN)
    return path


def test_all_optimizers_take_the_option_at_once(tmp_path, script):
    optimizers = [
        made(script, 3, SPANS["generator"]),
        made(script, 3, SPANS["discriminator"]),
        made(script, 4, SPANS["encoder"], type="SGD", module="torch.optim.sgd"),
    ]
    fused = propose(tmp_path, *optimizers, script=script)["fused"]
    assert fused.title == "Adam and SGD(fused=True) (gan.py:3, gan.py:3, gan.py:4)"
    assert fused.settings == {"optimizer": {"fused": True}}
    changed = fused.sources.bytes_of(script).decode()
    assert changed.count("fused=True") == 3
    assert changed.replace(", fused=True", "") == GAN


def test_optimizers_of_one_call_are_written_once(tmp_path, script):
    fused = propose(tmp_path, *[made(script, 4, SPANS["encoder"])] * 3, script=script)["fused"]
    assert fused.sources.bytes_of(script).decode().count("fused=True") == 1


def test_only_those_that_have_the_form_take_it(tmp_path, script):
    other = made(script, 4, SPANS["encoder"], type="RMSprop", module="torch.optim.rmsprop")
    proposals = propose(tmp_path, made(script, 3, SPANS["generator"]), other, script=script)
    assert proposals["fused"].title == "Adam(fused=True) (gan.py:3)"
    assert proposals["foreach"].title == "Adam and RMSprop(foreach=True) (gan.py:3, gan.py:4)"


@pytest.mark.parametrize(
    "others",
    [[{"type": "LBFGS", "module": "torch.optim.lbfgs"}], [{"fused": True}]],
    ids=["has no such form", "has it"],
)
def test_a_call_that_makes_others_as_well_is_left_as_it_is(tmp_path, script, others):
    both = [made(script, 4, SPANS["encoder"]), *(made(script, 4, SPANS["encoder"], **facts) for facts in others)]
    fused = propose(tmp_path, *both, script=script)["fused"]
    assert fused.sources is None and fused.title == "Adam(fused=True) at run time"


def test_one_inside_a_library_is_changed_at_run_time(tmp_path, script):
    library = tmp_path / "site-packages" / "lightning" / "factory.py"
    fused = propose(tmp_path, made(script, 4, SPANS["encoder"]), made(library, 9), script=script)["fused"]
    assert fused.sources is None and fused.title == "Adam(fused=True) at run time"


@pytest.mark.parametrize(
    "facts",
    [{"fused": True}, {"foreach": True}, {"type": "LBFGS"}, {"module": "apex.optimizers"}],
    ids=lambda facts: next(iter(facts)),
)
def test_there_is_nothing_to_propose(tmp_path, script, facts):
    with pytest.raises(NotApplicable, match="no fused form, or uses it"):
        propose(tmp_path, made(script, 4, SPANS["encoder"], **facts), script=script)
