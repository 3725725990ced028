"""Wall-clock time that may be spent."""

from simplify_builders import VirtualClock

from unstall.simplify.budget import ExperimentBudget


def test_it_is_spent_as_time_passes():
    clock = VirtualClock()
    budget = ExperimentBudget(10.0, clock)
    assert budget.allows(10.0) and not budget.allows(10.1)
    clock.now += 8.0
    assert budget.left == 2.0 and not budget.allows(3.0)


def test_a_part_ends_with_the_whole_at_the_latest():
    clock = VirtualClock()
    budget = ExperimentBudget(10.0, clock)
    part, rest = budget.part(4.0), budget.part(float("inf"))
    clock.now += 5.0
    assert part.left == -1.0 and rest.left == 5.0
