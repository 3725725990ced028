"""Embeddings with sparse gradients: where they pay, and for which optimizers they change no training."""

from __future__ import annotations

import pytest
from factory import measurement
from optimize_builders import make_context

from unstall.optimize.observed import ObservedOptimizer, RuntimeFacts
from unstall.optimize.remedies.sparse_gradients import REMEDY
from unstall.optimize.source.errors import NotApplicable
from unstall.records.model import OperatorLine

SOURCE = """from torch import nn
import torch


class Towers(nn.Module):
    def __init__(self, users, items):
        super().__init__()
        self.users = nn.Embedding(users, 64)
        self.items = torch.nn.EmbeddingBag(items, 64, mode="mean")
        self.kinds = nn.Embedding(4, 64, sparse=False)
"""


def proposed(
    tmp_path, source=SOURCE, *, optimizers=("Adagrad",), fused=None, backward_s=0.03, node="EmbeddingBackward0"
):
    script = tmp_path / "train.py"
    script.write_text(source)
    line = OperatorLine(frames=(), forward_s=0.001, backward_s=backward_s, node=node, per_step=1.0)
    measured = measurement({"backward": 0.04, "optimizer": 0.05, "forward": 0.01}, operators=[line])
    made = tuple(ObservedOptimizer(type=name, module="torch.optim", fused=fused) for name in optimizers)
    context = make_context(tmp_path, script=script, measurement=measured, runtime=RuntimeFacts(optimizers=made))
    (proposal,) = REMEDY.propose(context)
    return proposal, proposal.sources.bytes_of(script).decode()


def test_all_tables_that_say_nothing_of_it_are_made_so(tmp_path):
    proposal, source = proposed(tmp_path)
    assert source == SOURCE.replace("(users, 64)", "(users, 64, sparse=True)").replace(
        'mode="mean")', 'mode="mean", sparse=True)'
    )
    assert proposal.title == "embeddings with sparse=True (train.py:8, train.py:9)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.8 * 0.8))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"optimizers": ("SGD", "Adam")}, "Adam moves rows that a batch does not use"),
        ({"optimizers": ()}, "no optimizer of torch's"),
        ({"fused": True}, "a fused optimizer takes no sparse gradients"),
        ({"backward_s": 0.001}, "no gradient of an embedding"),
        ({"node": "AddmmBackward0"}, "no gradient of an embedding"),
        ({"source": "import towers\n"}, "makes no embedding"),
    ],
)
def test_where_it_would_change_the_training_or_gain_nothing_it_is_left(tmp_path, given, reason):
    with pytest.raises(NotApplicable, match=reason):
        proposed(tmp_path, **given)
