"""FLOPs of recurrent layers that one operator computes as a whole."""

from __future__ import annotations

import pytest

from unstall.child import flops, recurrent_flops

torch = pytest.importorskip("torch", reason="counts the operators of torch")


def counted(layer, fused):
    x = torch.randn(7, 3, 10, requires_grad=True)
    with torch.backends.mkldnn.flags(enabled=fused), flops.make_counter() as counter:
        layer(x)[0].sum().backward()
    return counter


@pytest.mark.parametrize("settings", [{}, {"num_layers": 2}, {"bidirectional": True}, {"bias": False}])
def test_a_layer_takes_what_it_takes_step_by_step(settings):
    layer = torch.nn.LSTM(10, 16, **settings)
    whole, steps = counted(layer, fused=True), counted(layer, fused=False)
    assert whole.unknown == steps.unknown == 0
    # Step by step, the first state's gradient is not computed: no one needs it.
    assert 0.9 < steps.flops / whole.flops <= 1


@pytest.mark.parametrize(("name", "times"), [("_cudnn_rnn", 1), ("_cudnn_rnn_backward", 2)])
def test_a_layer_on_a_gpu(name, times):
    weights = [torch.empty(64, 10), torch.empty(64, 16), torch.empty(64), torch.empty(64)]
    found = recurrent_flops.of_call(name, [torch.empty(7, 3, 10), weights, 4])
    assert found == times * 2 * 7 * 3 * 64 * (10 + 16)


def test_packed_sequences_have_no_dimension_of_time():
    weights = [torch.empty(64, 10), torch.empty(64, 16)]
    assert recurrent_flops.of_call("_cudnn_rnn", [torch.empty(11, 10), weights]) == (2 * 11 * 64 * (10 + 16))


def test_other_operators_have_another_formula():
    assert recurrent_flops.of_call("mm", []) is None
