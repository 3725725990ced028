"""A callback of every step is called every N-th time, from the user's own line that leads to it alone."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_finding, make_measurement, make_report

from unstall.optimize.remedies.run_less_often import REMEDY
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.records.measurements import SeamSite
from unstall.records.observations import Frame, StackSample
from unstall.records.report import Culprit

PROGRAM = '''"""Trains."""

import torch


class Log:
    def step(self, loss):
        lines.append(loss)


class Trainer:
    def train_step(self, x):
        loss = self.model(x)
        return loss

    def fit(self, batches):
        for x in batches:
            loss = self.train_step(x)
            # what others want to see
            for callback in self.callbacks:
                callback.step(loss)
        return loss


def main():
    Trainer().fit([1.0])


lines = []
'''
LINES = {name: number for number, name in enumerate(PROGRAM.splitlines(), 1)}


def line_of(text):
    return next(number for line, number in LINES.items() if line.strip() == text)


def frame(path, function, text):
    return Frame(function, str(path), line_of(text))


def context_of(tmp_path, source=PROGRAM, share=0.8, shown=False, cause="logging"):
    path = tmp_path / "train.py"
    path.write_text(source)
    main = frame(path, "main", "Trainer().fit([1.0])")
    leading = (main, frame(path, "Trainer.fit", "callback.step(loss)"), frame(path, "Log.step", "lines.append(loss)"))
    training = (main, frame(path, "Trainer.fit", "loss = self.train_step(x)"))
    samples = [StackSample(1, "MainThread", leading, 80), StackSample(1, "MainThread", training, 20)]
    site = SeamSite(
        "~forward", str(path), "Trainer.train_step", line_of("loss = self.model(x)"),
        tuple((one.file, one.function, one.line) for one in reversed(training)),
    )  # fmt: skip
    culprit = Culprit(function="Log.step", file=str(path), line=line_of("lines.append(loss)"), share=share)
    sites = [site]
    if shown:
        within = tuple((one.file, one.function, one.line) for one in reversed(leading[:2]))
        sites += [SeamSite("~forward", str(path), "Log.step", leading[2].line, within, grad=False)]
    finding = make_finding("callback-bound", cause=cause, culprit=culprit, share=share)
    measurement = make_measurement(samples=samples, sites=sites)
    report = make_report(findings=[finding])
    return make_context(tmp_path, report=report, measurement=measurement, sources=Sources()), path


def test_the_loop_over_callbacks_runs_every_hundredth_time(tmp_path):
    context, path = context_of(tmp_path)
    (proposal,) = REMEDY.propose(context)
    assert proposal.title == "the call in train.py:20 every 100th time"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.8 * 0.99))
    text = proposal.sources.module(path).text
    assert "            # what others want to see\n            if next(_calls_so_far) % 100 == 0:\n" in text
    space: dict = {}
    exec(text, space)
    trainer = space["Trainer"]()
    trainer.model, trainer.callbacks = float, [space["Log"]()]
    trainer.fit(range(250))
    assert space["lines"] == [0.0, 100.0, 200.0]


def test_a_second_one_in_a_file_counts_by_itself(tmp_path):
    context, path = context_of(tmp_path, PROGRAM.replace("import torch\n", "import torch; _calls_so_far = []\n"))
    (proposal,) = REMEDY.propose(context)
    text = proposal.sources.module(path).text
    assert "_calls_so_far_2 = itertools.count()" in text and "if next(_calls_so_far_2) % 100 == 0:" in text


def test_a_small_share_is_thinned_less(tmp_path):
    context, _ = context_of(tmp_path, share=0.1)
    (proposal,) = REMEDY.propose(context)
    assert proposal.title.endswith("every 10th time")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("self.seen = callback.step(loss)", "what it returns is used"),
        ("callback.step(loss), print(1)", "what it returns is used"),
    ],
)
def test_a_call_that_gives_something_back_is_left(tmp_path, changed, reason):
    context, _ = context_of(
        tmp_path, PROGRAM.replace("                callback.step(loss)", f"                {changed}")
    )
    with pytest.raises(NotApplicable, match=reason):
        REMEDY.propose(context)


def test_a_loop_of_the_module_itself_will_do(tmp_path):
    source = PROGRAM.replace("def main():\n    Trainer().fit([1.0])\n", "def main():\n    pass\n")
    source += "trainer = Trainer()\nwhile len(lines) < 5:\n    Log().step(1.0)\n"
    context, path = context_of(tmp_path, source.replace("    pass", "    Trainer().fit([1.0])"))
    loop = Frame("<module>", str(path), source.count("\n"))
    leading = (loop, frame(path, "Log.step", "lines.append(loss)"))
    measurement = make_measurement(samples=[StackSample(1, "MainThread", leading, 80)])
    context = make_context(tmp_path, report=context.report, measurement=measurement, sources=Sources())
    (proposal,) = REMEDY.propose(context)
    text = proposal.sources.module(path).text
    assert "while len(lines) < 5:\n    if next(_calls_so_far) % 100 == 0:\n        Log().step(1.0)\n" in text


@pytest.mark.parametrize(
    ("changed", "after", "is_left"),
    [
        ("auc, ap = callback.step(loss)", "", False),
        ("auc, ap = callback.step(loss)", "print(auc)", True),
        ("auc = callback.step(loss)", "self.seen = loss", False),
        ("auc = last = callback.step(loss)", "", True),
        ("self.seen, ap = callback.step(loss)", "", True),
    ],
)
def test_what_a_loop_only_names_is_thinned_too(tmp_path, changed, after, is_left):
    body = f"                {changed}\n" + f"                {after}\n" * bool(after)
    source = PROGRAM.replace("                callback.step(loss)\n", body + "            x = loss\n")
    context, path = context_of(tmp_path, source.replace(changed, "callback.step(loss)"))
    path.write_text(source)
    if is_left:
        with pytest.raises(NotApplicable, match="what it returns is used"):
            REMEDY.propose(context)
    else:
        (proposal,) = REMEDY.propose(context)
        assert "% 100 == 0:" in proposal.sources.module(path).text


def test_a_name_that_is_taken_is_left(tmp_path):
    context, _ = context_of(tmp_path, PROGRAM + "itertools = 3\n")
    with pytest.raises(NotApplicable, match="itertools"):
        REMEDY.propose(context)


def test_the_line_that_leads_to_the_training_as_well_is_left(tmp_path):
    context, path = context_of(tmp_path)
    (proposal,) = REMEDY.propose(context)
    assert "Trainer().fit([1.0])\n\n\nlines" in proposal.sources.module(path).text  # main's call is as it was


def test_a_plot_of_what_the_model_gives_trains_nothing_and_validation_is_left(tmp_path):
    context, _ = context_of(tmp_path, shown=True)
    (proposal,) = REMEDY.propose(context)
    assert proposal.title == "the call in train.py:20 every 100th time"
    context, _ = context_of(tmp_path, shown=True, cause="validation")
    with pytest.raises(NotApplicable):
        REMEDY.propose(context)
