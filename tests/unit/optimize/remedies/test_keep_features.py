"""What a frozen part gives for a sample is kept, as long as it is what the part would give."""

from __future__ import annotations

import pytest
import torch
from optimize_builders import make_context, make_measurement, make_report
from torch import nn

from unstall.child.trial import kept_features
from unstall.optimize.remedies.keep_features import REMEDY
from unstall.optimize.runtime.kept_features import _KeptFeatures
from unstall.optimize.source.errors import NotApplicable
from unstall.records.model import FrozenPart
from unstall.records.observations import Frame, StackSample


class Counted(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x)


def make_part(*layers):
    torch.manual_seed(0)
    return Counted(nn.Sequential(nn.Linear(3, 4), *layers)).requires_grad_(False).eval()


BATCH = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))


def test_rows_that_came_before_are_not_computed_again_in_whatever_order():
    part = make_part(nn.BatchNorm1d(4), nn.Dropout())
    first = _KeptFeatures.of(part, BATCH)
    again = _KeptFeatures.of(part, BATCH[[4, 1, 1]])
    assert part.calls == 1 and torch.equal(again, first[[4, 1, 1]])
    _KeptFeatures.of(part, torch.cat([BATCH[:1], torch.ones(1, 3)]))
    assert part.calls == 2


def test_what_is_kept_is_nobody_elses():
    part = make_part()
    first = _KeptFeatures.of(part, BATCH)
    wanted = first.clone()
    first.add_(1)
    _KeptFeatures.of(part, BATCH).add_(1)
    assert torch.equal(_KeptFeatures.of(part, BATCH), wanted) and part.calls == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.inner[0].weight.data.mul_(2),  # which leaves no trace in its version
        lambda part: part.inner[1].running_mean.add_(1),
        lambda part: part.inner.append(nn.ReLU()),
        lambda part: part.inner[0].train(),
    ],
)
def test_another_state_is_another_part(change):
    part = make_part(nn.BatchNorm1d(4))
    _KeptFeatures.of(part, BATCH)
    change(part)
    assert torch.equal(_KeptFeatures.of(part, BATCH), part.inner(BATCH)) and part.calls == 2


@pytest.mark.parametrize(
    "part",
    [
        make_part(nn.Dropout()).train(),
        make_part(nn.BatchNorm1d(4)).train(),
        make_part().requires_grad_(),
        make_part().double().float().to(torch.float32).requires_grad_(),
    ],
)
def test_what_draws_numbers_or_learns_is_computed(part):
    for _ in range(2):
        _KeptFeatures.of(part, BATCH)
    assert part.calls == 2


def test_a_part_without_gradients_here_is_kept():
    part = make_part().requires_grad_()
    with torch.no_grad():
        kept = [_KeptFeatures.of(part, BATCH) for _ in range(2)]
    assert part.calls == 1 and torch.equal(*kept)


def test_what_somebody_looks_into_and_other_inputs_are_computed():
    part = make_part()
    handle = part.inner[0].register_forward_hook(lambda *_: None)
    for batch in (BATCH, BATCH, BATCH.clone().requires_grad_(), BATCH[0]):
        _KeptFeatures.of(part, batch)
    handle.remove()
    assert part.calls == 4
    assert _KeptFeatures.of(lambda x: x, BATCH) is BATCH


def test_other_kinds_of_results_are_passed_on():
    class Pair(nn.Module):
        def forward(self, x):
            return x, x

    assert len(_KeptFeatures.of(Pair(), BATCH)) == 2
    assert _KeptFeatures.of(nn.Flatten(0), BATCH).shape == (18,) == _KeptFeatures.of(nn.Flatten(0), BATCH).shape


def test_no_more_is_kept_than_the_limit(monkeypatch):
    monkeypatch.setattr(_KeptFeatures, "most", 90)
    part = make_part()
    for start in (0, 3, 0, 3):
        _KeptFeatures.of(part, BATCH[start : start + 3])
    assert part.calls == 3  # 48 bytes of the first three rows are kept, and the others would be as many


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0)


class Drawing(nn.Module):
    def forward(self, x):
        return x + torch.rand(())


@pytest.mark.parametrize(
    ("part", "why"), [(make_part(), None), (Centred(), "others of its batch"), (Drawing(), "each time")]
)
def test_the_check_sees_whether_a_row_is_known_by_itself(part, why):
    told: list[str] = []

    class Checked(_KeptFeatures):
        pass

    kept_features.check_class(Checked, told.append, 8.0)
    for _ in range(2):
        Checked.of(part, BATCH)
    assert not told if why is None else any(why in line for line in told)


PROGRAM = """import torch


class Classifier(torch.nn.Module):
    def forward(self, x):
        with torch.no_grad():
            x = torch.relu(self.backbone(x))
        return self.head(x)
"""


def context_of(tmp_path, source=PROGRAM, name="backbone", share=0.9):
    path = tmp_path / "train.py"
    path.write_text(source)
    line = next((n for n, text in enumerate(source.splitlines(), 1) if "backbone(" in text), 1)
    frames = (
        Frame("main", str(path), 8), Frame("Classifier.forward", str(path), line),
        Frame("ResNet.forward", "/lib/resnet.py", 60), Frame("Block.forward", "/lib/resnet.py", 20),
    )  # fmt: skip
    measurement = make_measurement(
        samples=[StackSample(1, "MainThread", frames, 80)],
        frozen=FrozenPart(name, "ResNet", "/lib/resnet.py", 50, share),
        phases={"forward": 0.8},
    )
    return make_context(tmp_path, report=make_report(), measurement=measurement), path


def test_the_call_of_the_part_is_kept(tmp_path):
    context, path = context_of(tmp_path)
    (proposal,) = REMEDY.propose(context)
    assert proposal.title == "what self.backbone gives for a sample is kept (train.py:7)"
    assert proposal.needs_revisits and proposal.predicted > 2
    text = proposal.sources.bytes_of(path).decode()
    assert "x = torch.relu(_KeptFeatures.of(self.backbone, x))" in text and "class _KeptFeatures" in text


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"share": 0.01}, "takes"),
        ({"name": "encoder"}, "does not call encoder"),
        ({"source": PROGRAM.replace("(x))", "(x, 3))")}, "with one batch alone"),
        ({"source": PROGRAM.replace("(x))", "(*x))")}, "with one batch alone"),
    ],
)
def test_others_are_left(tmp_path, given, why):
    context, _ = context_of(tmp_path, **given)
    with pytest.raises(NotApplicable, match=why):
        REMEDY.propose(context)


def test_where_every_part_learns_there_is_nothing_to_keep(tmp_path):
    with pytest.raises(NotApplicable, match="every part"):
        REMEDY.propose(make_context(tmp_path, measurement=make_measurement()))
