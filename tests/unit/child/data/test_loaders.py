import pytest

from unstall.child.data import loaders


@pytest.mark.parametrize(
    "cores, expected", [(1, [0, 1, 2, 3]), (2, [0, 1, 2, 4]), (4, [0, 1, 2, 4, 6]), (8, [0, 1, 2, 4, 8, 10])]
)
def test_worker_counts_double_up_to_two_more_than_cores(cores, expected):
    assert loaders.worker_counts(cores) == expected


def test_reasons_are_for_people():
    assert "at module level" in loaders.why(AttributeError("Can't pickle local object 'main.<locals>.Data'"))
    assert "__main__" in loaders.why(RuntimeError("An attempt ... before its bootstrapping phase has finished."))
    assert loaders.why(ValueError("first line\nsecond")) == "ValueError: first line"


def test_an_empty_loader_ends_instead_of_turning_for_ever():
    assert list(loaders.endless([])) == []
    endless = loaders.endless([1, 2])
    assert [next(endless) for _ in range(5)] == [1, 2, 1, 2, 1]


def test_counts_the_time_of_children_that_are_gone():
    import subprocess
    import sys

    before = loaders.cpu_s()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert loaders.cpu_s() > before + 0.01
