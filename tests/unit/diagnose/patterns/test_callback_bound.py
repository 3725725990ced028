"""Callback-bound: what hooks, loggers and checkpoints take."""

from __future__ import annotations

import msgspec
import pytest
from factory import (
    CALL,
    Source,
    lib,
    measurement,
    stack,
)
from patterncase import TRAINING, check, host_findings, match

from unstall.records.report import CallbackTime
from unstall.records.run import Between


@pytest.mark.parametrize(
    "seam, cause",
    [("torch.save", "checkpoint"), ("matplotlib.Figure.savefig", "plotting"), ("wandb.Run.log", "logging")],
)
def test_callback_bound_by_a_library_call(seam, cause):
    framework, *owner, event = seam.split(".")
    name = ".".join(owner) or framework
    call = CallbackTime(
        framework=framework, callback=name, event=event, calls=50, total_s=5.0, mean_s=0.1, share=0.5, step_s=0.1
    )
    finding = check(match("callback-bound", {**TRAINING, "callback": 0.1}, callbacks=[call]), "callback-bound")
    assert finding.cause == cause
    assert any(f"{call.name} took 100 ms a call, in 50 calls" in line for line in finding.evidence)
    assert finding.culprit is None


def test_callback_bound_by_a_frameworks_callback_without_samples(code):
    place = {"file": code.file, "line": code.line("# suppress")}
    often, rare = (
        CallbackTime(
            framework="lightning",
            callback=name,
            event="on_train_batch_end",
            calls=10,
            total_s=1.0,
            mean_s=0.1,
            share=0.5,
            step_s=step_s,
            **place,
        )
        for name, step_s in (("Checkpoint", 0.08), ("Board", 0.02))
    )
    finding = match("callback-bound", {**TRAINING, "callback": 0.1}, callbacks=[rare, often])
    assert (finding.culprit.function, finding.culprit.line) == ("Checkpoint.on_train_batch_end", place["line"])
    assert finding.cause == "checkpoint" and "save less often" in finding.advice[0]
    finding = match("callback-bound", {**TRAINING, "callback": 0.1}, callbacks=[rare])
    assert finding.cause == "logging" and "not at every on_train_batch_end" in finding.advice[0]


def test_callback_bound_by_the_users_own_function(code):
    plot = lib("matplotlib/figure.py", "savefig")
    samples = [stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), plot), stack(CALL)]
    finding = check(match("callback-bound", {**TRAINING, "other": 0.1}, samples=samples), "callback-bound")
    assert (finding.cause, finding.culprit.function) == ("plotting", "suppress")


@pytest.mark.parametrize(("state", "cause"), [("model.state_dict()", "checkpoint"), ("describe(model)", "logging")])
def test_a_callback_that_compresses_the_models_state_is_a_checkpoint(tmp_path, state, cause):
    """Most of its time is in the compression, which says nothing of what is compressed."""
    text = f"""
    def main():
        for batch in loader:
            history.save(model)  # save

    class History:
        def save(self, model):
            state = {state}
            file.write(state)  # write
    """
    code = Source(tmp_path / "train.py", text)
    samples = [stack(code.at("main", "# save"), code.at("save", "# write"), lib("numpy/core.py", "compress"))]
    finding = check(match("callback-bound", {**TRAINING, "other": 0.1}, samples=samples), "callback-bound")
    assert (finding.cause, finding.culprit.function) == (cause, "History.save")


def evaluating(share, between_share, **more):
    """A loop that spends a share of its step in validation, most of it between steps."""
    step = {"forward": 0.02, "backward": 0.02, "validation": 0.04 * share / (1 - share), **more.pop("phases", {})}
    each = between_share * step["validation"]
    return step, {"between": Between(mean_s=each, each_s=each * 100, count=12), **more}


def test_callback_bound_by_validation_between_steps(code):
    samples = [
        stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), count=60),
        stack(code.at("main", "# model"), CALL),
    ]
    phases, more = evaluating(0.6, 1.0, samples=samples)
    finding = check(match("callback-bound", phases, **more), "callback-bound")
    assert (finding.cause, finding.phases) == ("validation", ("validation",))
    assert any("12 times between steps" in line for line in finding.evidence)
    verdict, *_ = host_findings(measurement(phases, **more))
    assert (verdict.pattern, verdict.cause) == ("callback-bound", "validation")
    assert "goes into validation" in verdict.summary


@pytest.mark.parametrize("beside, named", [(40, "evaluate"), (5, "Net.decode")])
def test_in_validation_what_surrounds_the_models_calls_is_blamed_where_it_is_much(tmp_path, beside, named):
    text = """
    def evaluate(model, rows, seen):
        for row in rows:
            model.decode(row)  # decode
            if row not in seen:  # search
                seen.append(row)

    class Net:
        def decode(self, row):
            return self(row)  # call

    def train(model, rows):
        for row in rows:
            model(row).backward()  # model
        evaluate(model, rows, [])  # evaluate
    """
    code = Source(tmp_path / "evaluating.py", text)
    site = msgspec.structs.replace(code.site("~forward", "train", "# model"), grad=True)
    above = code.at("train", "# evaluate")
    samples = [
        stack(above, code.at("evaluate", "# decode"), code.at("Net.decode", "# call"), CALL, count=60),
        stack(above, code.at("evaluate", "# search"), count=beside),
        stack(code.at("train", "# model"), CALL, count=50),
    ]
    for seen, paused in ((samples, []), (samples[-1:], samples[:-1])):  # in windows like others, or in the pauses alone
        phases, more = evaluating(0.6, 1.0, samples=seen, pause_samples=paused, sites=[site])
        culprit = check(match("callback-bound", phases, **more), "callback-bound").culprit
        assert culprit.function == named
        assert culprit.share == pytest.approx(0.6 * (beside if named == "evaluate" else 60) / (60 + beside))


@pytest.mark.parametrize(
    "share, between_share, more",
    [
        (0.2, 1.0, {}),  # some of it training needs
        (0.6, 0.1, {}),  # a teacher, called within each step
        (0.6, 1.0, {"phases": {"env": 0.001}}),  # a policy that acts
    ],
)
def test_what_is_called_without_gradients_is_not_all_validation(share, between_share, more):
    phases, more = evaluating(share, between_share, **more)
    assert match("callback-bound", phases, **more) is None


def test_episodes_between_the_steps_of_an_agent_are_validation():
    phases, more = evaluating(0.6, 1.0, phases={"env": 0.001}, kind="env")
    assert match("callback-bound", phases, **more).cause == "validation"
