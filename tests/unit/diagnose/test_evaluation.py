"""Evaluation: the host code around its calls of the model is of it as well."""

from __future__ import annotations

import msgspec
from factory import BACKWARD, CALL, Source, lib, measurement, stack

from unstall.diagnose.blame import Blame
from unstall.diagnose.placing import count
from unstall.records.run import Between

TEXT = """
    def embed(x):
        return x  # embed

    def facts(batch):
        return [known[fact] for fact in batch]  # facts

    def evaluate(model):
        for batch in held_out:
            out = model(batch)  # quiet
            facts(out)  # call facts
            scores.append(out)  # score

    def train(model):
        for batch in loader:
            out = model(batch)  # model
            out.backward()  # backward
            log(out)  # log
        evaluate(model)  # call evaluate

    def log(out):
        print(out)  # print

    train(model)  # start
"""


def blame(code, more_samples=(), **more):
    top = code.at("<module>", "# start")
    evaluating = (top, code.at("train", "# call evaluate"))
    embedding = code.at("embed", "# embed")
    samples = [
        stack(top, code.at("train", "# model"), CALL, embedding, count=10),
        stack(top, code.at("train", "# backward"), BACKWARD, count=20),
        stack(top, code.at("train", "# log"), code.at("log", "# print"), count=5),
        stack(*evaluating, code.at("evaluate", "# quiet"), CALL, embedding, count=15),
        stack(*evaluating, code.at("evaluate", "# call facts"), code.at("facts", "# facts"), count=30),
        stack(*evaluating, code.at("evaluate", "# score"), count=20),
        *more_samples,
    ]
    above = ("train", "# model"), ("<module>", "# start")
    sites = [
        code.site("~forward", "train", "# model", above[1]),
        code.site("~backward", "train", "# backward", above[1]),
    ]
    phases = {"forward": 0.02, "backward": 0.02, "validation": 0.04}
    between = Between(mean_s=0.04, each_s=4.0, count=3)
    return Blame(measurement(phases, samples=samples, sites=sites, **{"between": between, **more}))


def test_what_an_evaluation_does_beside_calling_the_model_is_of_it(tmp_path):
    found = blame(Source(tmp_path / "train.py", TEXT))
    assert count(found.in_phase("validation")) == 65
    assert found.main_culprit(found.in_phase("validation")).function == "evaluate"
    assert (count(found.in_phase("forward")), count(found.in_phase("backward"))) == (10, 20)
    assert count(found.in_phase("callback")) == 5


def test_what_a_library_plots_is_no_evaluation(tmp_path):
    code = Source(tmp_path / "train.py", TEXT)
    plotting = lib("matplotlib/figure.py", "subplots")
    drawn = stack(
        code.at("<module>", "# start"), code.at("train", "# call evaluate"), code.at("evaluate", "# score"), plotting
    )
    found = blame(code, more_samples=[drawn])
    assert count(found.in_phase("callback")) == 5 + drawn.count
    assert count(found.in_phase("validation")) == 65


def test_validation_that_a_framework_calls_where_it_asks_for_batches_is_validation(tmp_path):
    code = Source(
        tmp_path / "train.py",
        """
        def training_step(batch):
            return model(batch)  # train
        def validation_step(batch):
            return model(batch)  # validate
        trainer.fit()  # fit
        """,
    )
    top = code.at("<module>", "# fit")
    sites = [
        code.site("~data.next", "<module>", "# fit"),
        code.site("~forward", "training_step", "# train", ("<module>", "# fit")),
        msgspec.structs.replace(
            code.site("~forward", "validation_step", "# validate", ("<module>", "# fit")), grad=False
        ),
    ]
    samples = [
        stack(top, code.at("training_step", "# train"), CALL, count=10),
        stack(top, code.at("validation_step", "# validate"), CALL, count=7),
    ]
    found = Blame(measurement({"forward": 0.05, "validation": 0.02}, samples=samples, sites=sites))
    assert (count(found.in_phase("forward")), count(found.in_phase("validation"))) == (10, 7)


def test_without_anything_between_steps_nothing_is_moved(tmp_path):
    found = blame(Source(tmp_path / "train.py", TEXT), between=None)
    assert count(found.in_phase("validation")) == 15


AGENT = """
    def evaluate(policy, env):
        obs = env.reset()  # reset
        obs = env.step(policy(obs))  # rate

    def act(policy, obs):
        return policy(obs)  # act

    def train(policy, env):
        for step in range(9):
            action = act(policy, obs)  # call act
            obs = env.step(action)  # step
            target = policy(obs)  # target
            policy(obs).backward()  # learn
        evaluate(policy, other)  # call evaluate
"""


def test_of_an_agent_it_is_what_steps_another_environment_and_no_call_without_gradients(tmp_path):
    code = Source(tmp_path / "agent.py", AGENT)
    above = code.at("train", "# call evaluate")
    samples = [
        stack(code.at("train", "# call act"), code.at("act", "# act"), CALL, count=10),
        stack(code.at("train", "# target"), CALL, count=20),
        stack(code.at("train", "# learn"), CALL, count=20),
        stack(above, code.at("evaluate", "# rate"), CALL, count=5),
        stack(above, code.at("evaluate", "# rate"), count=2),
    ]
    rated = code.site("~env.reset", "evaluate", "# reset", ("train", "# call evaluate"))
    sites = [
        code.site("~forward", "train", "# learn"),
        code.site("~env.step", "train", "# step"),
        msgspec.structs.replace(rated, evaluates=True),
    ]
    phases = {"env": 0.01, "forward": 0.02, "backward": 0.02, "validation": 0.01}
    found = Blame(measurement(phases, samples=samples, sites=sites, kind="env"))
    assert count(found.in_phase("validation")) == 7
    assert count(found.in_phase("forward")) == 50
