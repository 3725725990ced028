"""What no optimizer updates is frozen behind the line that makes the only one."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_measurement, make_report

from unstall.optimize.observed import ObservedOptimizer, RuntimeFacts
from unstall.optimize.remedies.freeze_parameters import REMEDY
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.places import CallSite
from unstall.records.model import ModelMeasurement

SOURCE = """import torch


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-3)  # the head alone
        self.history = []
"""


def case(tmp_path, source=SOURCE, *, updated=5, parts=("backbone",), optimizers=1):
    path = tmp_path / "train.py"
    path.write_text(source)
    made = ObservedOptimizer(call=CallSite(path, 7, "__init__"), type="AdamW", module="torch.optim.adamw")
    phases = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1}
    model = ModelMeasurement(gradients=100, updated=updated, idle_parts=parts)
    context = make_context(
        tmp_path,
        report=make_report(phases=phases),
        measurement=make_measurement(phases=phases, model=model),
        runtime=RuntimeFacts(optimizers=(made,) * optimizers),
    )
    return REMEDY.propose(context)


def test_the_part_is_frozen_behind_the_optimizer(tmp_path):
    (proposal,) = case(tmp_path)
    assert proposal.title == "backbone frozen (train.py:7)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.6 * 0.95))
    (changed,) = proposal.sources.changed.values()
    assert changed.decode() == SOURCE.replace(
        "  # the head alone\n", "  # the head alone\n        model.backbone.requires_grad_(False)\n"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"updated": 99}, "optimizers use the gradients"),
        ({"parts": ()}, "optimizers use the gradients"),
        ({"optimizers": 2}, "more than one optimizer"),
        ({"source": SOURCE + "        later = torch.optim.SGD(model.parameters())\n"}, "line 9 may give"),
        ({"source": SOURCE + "        self.optimizer.add_param_group({})\n"}, "line 9 may give"),
        ({"source": SOURCE.replace("model.head.parameters()", "groups")}, "other things than the parameters"),
        ({"source": SOURCE.replace("model.head.parameters()", "model.parameters()")}, "other things than"),
    ],
)
def test_what_may_be_trained_later_is_left_alone(tmp_path, change, reason):
    with pytest.raises(NotApplicable, match=reason):
        case(tmp_path, **change)


def test_a_scheduler_is_no_optimizer(tmp_path):
    assert case(tmp_path, SOURCE + "        torch.optim.lr_scheduler.StepLR(self.optimizer, 3)\n")
