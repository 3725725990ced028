"""What other programs took is taken out of the phase in which it was waited for, and of nothing that was computed."""

import pytest
from factory import measurement

from unstall.diagnose.neighbours import without_neighbours
from unstall.records.measurements import LoaderMeasurement
from unstall.records.report import PhaseTime


def phase(name, mean_s, *, cpu_s=None, blocked_s=0.0):
    return PhaseTime(name=name, share=0.5, mean_s=mean_s, cpu_s=cpu_s, blocked_s=blocked_s)


def undisturbed(*phases, **more):
    values = {"other_cores": 2.0, "team_delay_s": 0.0, "run_delay": 0.0, **more}
    measured = measurement({phase.name: phase for phase in phases}, **values)
    return without_neighbours(measured, {phase.name: phase.mean_s for phase in phases})


def test_without_other_programs_a_step_stays_as_it_was_timed():
    phases = phase("data_wait", 0.04, cpu_s=0.01), phase("forward", 0.06, cpu_s=0.02)
    assert undisturbed(*phases, other_cores=0.0, team_delay_s=0.5) == {"data_wait": 0.04, "forward": 0.06}


def test_the_main_threads_own_delay_is_taken_from_the_phase_that_it_occurred_in():
    seconds = undisturbed(
        phase("data_wait", 0.05, cpu_s=0.05), phase("forward", 0.05, cpu_s=0.02), run_delay=0.3, team_delay_s=0.03
    )
    assert seconds == {"data_wait": pytest.approx(0.05), "forward": pytest.approx(0.02)}


def test_delays_of_a_thread_pool_that_makes_batches_are_not_taken_from_the_model():
    seconds = undisturbed(
        phase("data_wait", 0.9, cpu_s=0.05, blocked_s=0.85), phase("forward", 0.1, cpu_s=0.095), team_delay_s=5.0
    )
    assert seconds["forward"] >= 0.095
    assert 0.05 <= seconds["data_wait"] < 0.9


def test_a_wait_for_threads_is_no_more_stretched_than_they_were():
    """Eight threads computed for 0.2 s and had no core for 0.2 s, all at once: half of the wait was theirs to compute."""
    seconds = undisturbed(
        phase("forward", 0.08, cpu_s=0.005, blocked_s=0.075), team_delay_s=0.2, main_cpu_s=0.205, other_cores=100.0
    )
    assert seconds["forward"] == pytest.approx(0.075 / 2, rel=0.15)


def test_who_waits_for_loader_workers_waits_for_no_thread_of_the_program():
    phases = phase("data_wait", 0.1, cpu_s=0.01, blocked_s=0.09), phase("forward", 0.1, cpu_s=0.02)
    seconds = undisturbed(*phases, team_delay_s=0.05, loader=LoaderMeasurement(workers=2))
    assert seconds["data_wait"] == pytest.approx(0.1)
    seconds = undisturbed(*phases, team_delay_s=0.05, loader=LoaderMeasurement())
    assert seconds["data_wait"] < 0.1


def test_no_phase_becomes_shorter_than_what_it_computed():
    seconds = undisturbed(phase("forward", 0.1, cpu_s=0.07), phase("backward", 0.2, cpu_s=0.12), team_delay_s=100.0)
    assert seconds == {"forward": pytest.approx(0.07), "backward": pytest.approx(0.12)}


def test_where_cpu_time_is_not_known_a_small_part_of_the_phase_stays():
    seconds = undisturbed(phase("forward", 0.1), team_delay_s=100.0, run_delay=0.5)
    assert 0 < seconds["forward"] < 0.01


def test_a_phase_that_waits_for_nobody_has_no_part_in_the_delays_of_other_threads():
    seconds = undisturbed(phase("callback", 0.1, cpu_s=0.02), phase("forward", 0.1), team_delay_s=0.05, run_delay=0.0)
    assert seconds["callback"] == pytest.approx(0.02)  # its own delay, 80 ms, alone
    assert seconds["forward"] == pytest.approx(0.05)
