"""Checks that were left on are turned off, where the program's own code can do it."""

from __future__ import annotations

import pytest
from factory import measurement
from optimize_builders import make_context, make_finding, make_report

from unstall.optimize.remedies.disable_debugging import REMEDY
from unstall.optimize.source.errors import NotApplicable


def changed(tmp_path, source, cause):
    script = tmp_path / "train.py"
    script.write_text(source)
    report = make_report(findings=[make_finding("debugging-bound", cause=cause, share=0.5)])
    context = make_context(tmp_path, script=script, report=report, measurement=measurement({"forward": 0.01}))
    (proposal,) = REMEDY.propose(context)
    return proposal, proposal.sources.bytes_of(script).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.autograd.set_detect_anomaly(True)", "torch.autograd.set_detect_anomaly(False)"),
        ("torch.autograd.set_detect_anomaly(mode=True, check_nan=False)", "torch.autograd.set_detect_anomaly(False)"),
        ("with torch.autograd.detect_anomaly():", "with torch.autograd.set_detect_anomaly(False):"),
        ("trainer = L.Trainer(max_epochs=3, detect_anomaly=True)",
         "trainer = L.Trainer(max_epochs=3, detect_anomaly=False)"),
    ],
)  # fmt: skip
def test_anomaly_detection_is_switched_off_where_it_is_switched_on(tmp_path, before, after):
    block = "    train()\n" if before.endswith(":") else ""
    proposal, source = changed(tmp_path, f"import torch\n\n{before}\n{block}", "anomaly-detection")
    assert source == f"import torch\n\n{after}\n{block}"
    assert proposal.title == "anomaly-detection off (train.py:3)"
    assert proposal.predicted == pytest.approx(2.0)


def test_the_checks_of_distributions_are_off_before_any_is_made(tmp_path):
    proposal, source = changed(tmp_path, "import torch as t\n\ntrain()\n", "argument-checks")
    assert source.splitlines()[2] == "t.distributions.Distribution.set_default_validate_args(False)"
    assert proposal.title == "argument-checks off (after the imports of train.py)"


def test_environments_are_made_without_the_checker(tmp_path):
    _, source = changed(tmp_path, "import gymnasium as gym\nenv = gym.make('CartPole-v1')\n", "environment-checker")
    assert source.splitlines()[-1] == "env = gym.make('CartPole-v1', disable_env_checker=True)"


@pytest.mark.parametrize(
    ("source", "cause", "reason"),
    [
        ("import torch\ntorch.autograd.set_detect_anomaly(args.debug)\n", "anomaly-detection", "by no plain True"),
        ("import torch\ntorch.autograd.set_detect_anomaly(False)\n", "anomaly-detection", "by no plain True"),
        ("import mine\nmine.set_detect_anomaly(True)\n", "anomaly-detection", "by no plain True"),
        ("import mine\nmine.train()\n", "argument-checks", "does not import torch"),
        ("env = make('CartPole-v1')\n", "environment-checker", "makes no environment"),
        ("import torch\n", None, "no checks"),
    ],
)
def test_what_is_an_option_of_the_program_is_left_to_its_user(tmp_path, source, cause, reason):
    with pytest.raises(NotApplicable, match=reason):
        changed(tmp_path, source, cause)


def test_it_is_advised_and_not_kept_unasked():
    assert REMEDY.exactness == "output-changing"
