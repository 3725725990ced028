"""Facts about modules and tensors are right, and none of the program's code runs where they are read."""

from __future__ import annotations

import pytest
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from unstall.child import reading
from unstall.child.seams import autograd, modules

torch = pytest.importorskip("torch")


class Curious(torch.nn.Linear):
    """Fails where anything of it is asked."""

    asked: tuple[str, ...] = ()

    def __getattribute__(self, name):
        Curious.asked += (name,)
        return super().__getattribute__(name)

    def parameters(self, recurse=True):
        raise AssertionError

    def extra_repr(self):
        raise AssertionError


class Shy(torch.Tensor):
    """Fails where its shape is asked."""

    @property
    def shape(self):
        raise AssertionError

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError


class Wrapping(torch.Tensor):
    """Answers in Python for its shape."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise AssertionError


class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise AssertionError


def twice():
    shared = torch.nn.Linear(2, 3)
    return torch.nn.ModuleDict({"a": shared, "b": torch.nn.Sequential(shared, torch.nn.BatchNorm1d(3))})


@pytest.mark.parametrize(
    "build",
    [
        twice,
        lambda: torch.nn.Transformer(8, 2, 1, 1, 8, batch_first=True),
        lambda: torch.jit.script(torch.nn.Sequential(torch.nn.Linear(8, 1))),
        lambda: torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(8, 1)), torch.ones(1, 8)),
    ],
    ids=["shared", "transformer", "script", "trace"],
)
def test_modules_and_parameters_are_those_that_torch_lists(build):
    model = build()
    assert [name for name, _ in reading.modules(model)] == [name for name, _ in model.named_modules()]
    assert modules._facts(model)["parameters"] == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.Linear(2, 3, bias=False),
        torch.nn.Conv2d(2, 4, 3, padding=1, groups=2),
        torch.nn.BatchNorm1d(3),
        torch.nn.LSTM(2, 3, 2, bidirectional=True),
        torch.nn.Embedding(5, 2, padding_idx=0),
        torch.nn.MaxPool2d(2),
        torch.nn.Dropout(0.1),
        torch.nn.LayerNorm(4),
        torch.nn.Sequential(torch.nn.ReLU()),
    ],
    ids=lambda module: type(module).__name__,
)
def test_a_module_of_torch_is_described_as_torch_does(module):
    assert reading.described(module) == module.extra_repr()


def test_a_module_that_is_an_attribute_too_is_described():
    linear = torch.nn.Linear(3, 4)
    held = torch.nn.Identity()
    linear.__dict__["inner"] = held
    linear._modules["inner"] = held
    assert reading.described(linear) == linear.extra_repr()


def test_a_module_of_the_program_is_not_asked():
    model = Curious(3, 2)
    Curious.asked = ()
    facts = modules._facts(model)
    described = reading.described(model)
    assert Curious.asked == ()
    assert (facts["parameters"], facts["dtype"], facts["device"]) == (8, "torch.float32", "cpu")
    assert facts["file"].endswith("linear.py")
    assert described == "in_features=3, out_features=2, bias=True"


def test_a_batch_of_a_class_of_the_program_is_not_asked():
    model = torch.nn.Linear(3, 2)
    assert modules.batch_facts(model, torch.ones(5, 3).as_subclass(Shy)) == {"size": 5, "sample": [3]}
    assert modules.batch_facts(model, torch.ones(5, 3).as_subclass(Wrapping))["size"] is None


def test_modes_of_the_program_see_nothing():
    model, batch, loss = torch.nn.Linear(3, 2), torch.ones(5, 3), torch.tensor(float("nan"))
    with Functions(), Operators():
        assert modules._facts(model)["parameters"] == 8
        assert modules.batch_facts(model, batch)["size"] == 5
        assert autograd._is_nan((loss,))


def test_a_tracer_sees_nothing():
    read = []

    def traced(x):
        read.append(modules.batch_facts(None, x)["size"])
        return x + 1

    graph = str(torch.jit.trace(traced, torch.ones(5, 3)).graph)
    assert read[0] == 5
    assert "aten::size" not in graph
    assert "aten::add" in graph


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5])
def test_a_loss_that_is_not_a_number_is_known(dtype, value):
    losses = torch.tensor([0.0, value], dtype=dtype)
    assert autograd._is_nan((losses[1],)) is (value != value)
    assert not autograd._is_nan((losses[0],))


@pytest.mark.parametrize("outputs", [None, (), (None,), (torch.ones(2) / 0 * 0,), (torch.tensor(1),)], ids=repr)
def test_what_is_no_loss_is_no_nan(outputs):
    assert not autograd._is_nan(outputs)


def test_a_loss_without_memory_of_its_own_is_not_read():
    seen = torch.vmap(lambda loss: torch.tensor(autograd._is_nan((loss,))))(torch.full((2,), float("nan")))
    assert not seen.any()
