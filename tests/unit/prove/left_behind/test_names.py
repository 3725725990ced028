"""Names of files that are others in each run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.left_behind.names import by_known_names, known_as


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("runs/events.out.tfevents.1795735460.vm.16907.0", "runs/events.out.tfevents.1795739999.vm.8.0"),
        ("runs/Nov26_23-32-02_vm/loss.csv", "runs/Nov26_23-32-02_vm/loss.csv"),
        ("out/2026-11-26_23-32-02/model.pt", "out/2026-11-27_00-00-09/model.pt"),
        ("out/20261126-233202/model.pt", "out/20261126-233310/model.pt"),
        ("mlruns/0/" + "a1" * 16 + "/metrics/loss", "mlruns/0/" + "0f" * 16 + "/metrics/loss"),
        ("x/6f9619ff-8b86-d011-b42d-00c04fc964ff.txt", "x/00000000-8b86-d011-b42d-00c04fc964aa.txt"),
    ],
)
def test_moments_processes_and_random_numbers_are_no_part_of_a_name(one, other):
    assert known_as(one) == known_as(other)


@pytest.mark.parametrize("name", ["model-10.pt", "epoch_20261.pt", "version_0/a.bin", "train.py", "loss-0.0012.txt"])
def test_other_names_stay(name):
    assert known_as(name) == name


def test_files_of_one_name_are_told_apart_by_their_order():
    files = {f"tfevents.179573546{number}.vm": number for number in (3, 1, 2)}
    assert by_known_names(files) == {"tfevents.#.vm": 1, "tfevents.#.vm (2)": 2, "tfevents.#.vm (3)": 3}


@given(st.dictionaries(st.text("ab12/ ()#", max_size=12), st.integers(), max_size=8))
def test_no_file_is_lost(files):
    assert sorted(by_known_names(files).values()) == sorted(files.values())
