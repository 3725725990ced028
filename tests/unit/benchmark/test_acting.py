"""How many observations a call of the policy answers."""

import pytest
from spanfactory import Recording

from unstall.benchmark.acting import environments, observations


def play(turns, envs, *, num_envs=1, repeat=1):
    """A policy that is called, and then the environments stepped in turn, each so often."""
    recording = Recording()
    for env in envs:
        recording.emit_fact("env", id=env, num_envs=num_envs)
    for _ in range(turns):
        recording.do("~forward", 0.001, arg=1)
        for env in envs:
            for _ in range(repeat):
                recording.do("~env.step", 0.001, arg=env)
    return recording.process()


@pytest.mark.parametrize(
    ("envs", "num_envs", "repeat", "answered"),
    [([7], 1, 1, 1), ([7, 8, 9, 10], 1, 1, 4), ([7], 16, 1, 16), ([7], 1, 4, 1)],
)
def test_observations_are_those_of_the_environments_between_two_calls(envs, num_envs, repeat, answered):
    process = play(10, envs, num_envs=num_envs, repeat=repeat)
    assert observations(process) == answered
    assert environments(process) == num_envs


def test_random_actions_before_the_policy_is_called_do_not_count():
    recording = Recording()
    for env in range(50):
        recording.do("~env.step", 0.001, arg=env)
    for _ in range(10):
        recording.do("~forward", 0.001, arg=1)
        recording.do("~env.step", 0.001, arg=7)
    assert observations(recording.process()) == 1


def test_without_a_model_it_is_the_size_of_the_vector():
    recording = Recording()
    recording.emit_fact("env", id=7, num_envs=3)
    recording.do("~env.step", 0.001, arg=7)
    assert observations(recording.process()) == 3
    assert observations(Recording().process()) == 1
