"""Which models are to be compiled, and where that is written."""

from __future__ import annotations

import textwrap

import pytest
from msgspec.structs import replace
from optimize_builders import make_context, make_measurement, make_report

from unstall.optimize.observed import ObservedOptimizer, RuntimeFacts
from unstall.optimize.remedies import compile_model
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.places import CallSite
from unstall.records.compiled import CompiledFrame
from unstall.records.measurements import SeamSite
from unstall.records.model import ModuleMeasurement
from unstall.records.run import Throughput


@pytest.fixture(autouse=True)
def _has_compiler(monkeypatch):
    monkeypatch.setattr(compile_model, "has_compiler", lambda: True)


def propose(tmp_path, source, *lines, mfu=0.03, sites=(), **measured):
    """The proposal for a program that makes its optimizers on these lines, and its source with the change in it."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(source))
    optimizers = tuple(ObservedOptimizer(type="Adam", call=CallSite(script, line, "<module>")) for line in lines)
    called = tuple(SeamSite("~forward", str(script), function, line) for function, line in sites)
    phases = {"forward": 0.5, "backward": 0.3, "optimizer": 0.2}
    measurement = make_measurement(phases=phases, sites=called, **measured)
    report = replace(make_report(phases=phases), throughput=Throughput(steps_per_s=10.0, mfu=mfu))
    context = make_context(
        tmp_path, script=script, report=report, measurement=measurement, runtime=RuntimeFacts(optimizers=optimizers)
    )
    (found,) = compile_model.REMEDY.propose(context)
    return found, found.sources.bytes_of(script).decode()


SIMPLE = """
from torch import optim
model = Net()
# the usual
optimizer = optim.Adam(model.parameters())
"""


def test_the_model_is_compiled_before_its_optimizer_is_made(tmp_path):
    found, changed = propose(tmp_path, SIMPLE, 5)
    assert found.title == "model.compile() (train.py:5)" and found.compiles
    assert changed == SIMPLE.replace("optimizer =", "model.compile()\noptimizer =")


def test_what_is_no_arithmetic_can_be_saved(tmp_path):
    slow, _ = propose(tmp_path, SIMPLE, 5, mfu=0.03)
    fast, _ = propose(tmp_path, SIMPLE, 5, mfu=0.29)
    assert slow.predicted > 1.5 and fast.predicted < 1.05
    assert slow.because == "the model takes 80 % of the step, and 90 % of that is not arithmetic at a good rate"


@pytest.mark.parametrize(
    ("source", "lines", "models"),
    [
        ("opt = Adam(net.parameters())\n", [1], ["net"]),
        ("opt = Adam(p for p in net.parameters() if p.requires_grad)\n", [1], ["net"]),
        ("weights = list(net.parameters())\nopt = Adam(weights, lr=0.1)\n", [2], ["net"]),
        ("opt = Adam([{'params': net.head.parameters()}, {'params': net.body.parameters()}])\n", [1],
         ["net.head", "net.body"]),
        ("opt = Adam([*net.parameters(), *net.head.parameters()])\n", [1], ["net"]),
        ("opt = Adam(p for n, p in self.net.named_parameters() if 'bias' in n)\n", [1], ["self.net"]),
        ("one = Adam(g.parameters())\ntwo = Adam(d.parameters())\n", [1, 2], ["g", "d"]),
        ("def make(net):\n    return Adam(net.parameters())\n", [2], ["net"]),
    ],
)  # fmt: skip
def test_the_models_whose_parameters_are_trained(tmp_path, source, lines, models):
    found, changed = propose(tmp_path, source, *lines)
    assert [part.split(".compile()")[0] for part in found.title.split(" and ")] == models
    added = [line.strip() for line in changed.splitlines() if line not in source.splitlines()]
    assert added == [f"{model}.compile()" for model in models]


def test_two_optimizers_of_one_statement_are_made_after_both_models(tmp_path):
    source = "pair = Adam(g.parameters()), SGD(d.parameters())\n"
    span = {"Adam": (1, 1, 7, 27), "SGD": (1, 1, 29, 48)}
    script = tmp_path / "train.py"
    script.write_text(source)
    runtime = RuntimeFacts(
        optimizers=tuple(ObservedOptimizer(type=name, call=CallSite(script, 1, "f", span[name])) for name in span)
    )
    (found,) = compile_model.REMEDY.propose(make_context(tmp_path, script=script, runtime=runtime))
    assert found.sources.bytes_of(script).decode() == f"g.compile()\nd.compile()\n{source}"


@pytest.mark.parametrize(
    ("source", "lines", "why"),
    [
        ("opt = Adam(self.parameters())\n", [1], "train.py:1: the optimizer's model has no name there"),
        ("opt = Adam(make().parameters())\n", [1], "no name there"),
        ("opt = Adam([torch.zeros(3, requires_grad=True)])\n", [1], "no name there"),
        ("net = Net(); opt = Adam(net.parameters())\n", [1], "train.py:1: the line makes an optimizer among"),
        ("for fold in range(5):\n    opt = Adam(net.parameters())\n", [2, 2], "again and again"),
    ],
)
def test_a_model_that_cannot_be_named_is_left_as_it_is(tmp_path, source, lines, why):
    with pytest.raises(NotApplicable, match=why):
        propose(tmp_path, source, *lines)


@pytest.mark.parametrize("layer", ["Dropout", "Dropout2d", "AlphaDropout"])
def test_a_model_that_drops_at_random_has_torch_draw_the_numbers(tmp_path, layer):
    dropping = ModuleMeasurement("drop", layer, "dropout.py", 1, 1.0, 0.1, 0.1, 0)
    found, _ = propose(tmp_path, SIMPLE, 5, modules=[dropping])
    assert found.title == 'model.compile(options={"fallback_random": True}) (train.py:5)'


def test_what_is_compiled_is_not_compiled_again(tmp_path):
    frame = CompiledFrame(function="forward", file="net.py", line=3)
    with pytest.raises(NotApplicable, match="uses torch"):
        propose(tmp_path, SIMPLE, 5, compiled_frames=[frame])


def test_without_a_compiler_there_is_nothing_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(compile_model, "has_compiler", lambda: False)
    with pytest.raises(NotApplicable, match="install g\\+\\+"):
        propose(tmp_path, SIMPLE, 5)


def test_the_compiler_may_be_named_by_a_variable(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert not compile_model.has_compiler()
    compiler = tmp_path / "icpx"
    compiler.touch(mode=0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert compile_model.has_compiler()


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("net = Net()\nnet.eval()\nout = net(x)\n", "net = Net()\nnet.eval()\nnet.compile()\nout = net(x)\n"),
        ("net = Net().eval()\n\nout = net(x)\n", "net = Net().eval()\nnet.compile()\n\nout = net(x)\n"),
    ],
)
def test_a_program_that_trains_nothing_compiles_the_model_in_eval_mode(tmp_path, source, changed):
    assert propose(tmp_path, source, sites=[("<module>", 3)])[1] == changed


@pytest.mark.parametrize("source", ["out = net(x)\n", "a.eval()\nb.eval()\n", "serve(net.eval())\n", ""])
def test_which_model_it_is_has_to_be_plain(tmp_path, source):
    with pytest.raises(NotApplicable, match="does not put one model in eval mode"):
        propose(tmp_path, source, sites=[("<module>", 1)] if source else [])
