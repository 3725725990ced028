"""Allocating lines, read from real recordings of little programs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.benchmark.memory import allocating_lines, keeps_growing, program_site

memray = pytest.importorskip("memray")

LEAK = """
    import os, signal, sys, time
    import memray
    import numpy as np

    kept = []

    def leak(i):
        kept.append(np.ones(20_000))

    def scratch():
        return np.ones(500_000).sum()

    def once():
        return [np.ones(20_000) for _ in range(100)]

    def main():
        table = once()
        for i in range(100):
            leak(i)
            scratch()
            time.sleep(0.002)
        peak = np.ones(10_000_000)
        del peak
        for i in range(100):
            leak(i)
            scratch()
            time.sleep(0.002)
        if "--killed" in sys.argv:
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)

    with memray.Tracker(sys.argv[1]):
        main()
"""


def record(directory, *arguments):
    script, file = directory / "program.py", directory / "memray-1.bin"
    script.write_text(textwrap.dedent(LEAK))
    subprocess.run([sys.executable, str(script), str(file), *arguments], check=False)
    return script, file


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record(tmp_path_factory.mktemp("finished"))


def line_of(script, code):
    return 1 + next(i for i, line in enumerate(script.read_text().splitlines()) if code in line)


def test_the_peak_names_the_users_line(recording):
    script, file = recording
    found = allocating_lines(file)
    top = found.peak[0]
    assert (top.function, top.file) == ("main", str(script))
    assert top.line == line_of(script, "peak = np.ones")
    assert top.bytes >= 80_000_000
    assert [line.bytes for line in found.peak] == sorted((x.bytes for x in found.peak), reverse=True)


def test_growth_names_the_leaking_line_and_not_what_was_loaded_once(recording):
    script, file = recording
    growth = allocating_lines(file).growth
    assert (growth[0].function, growth[0].line) == ("leak", line_of(script, "kept.append"))
    assert growth[0].bytes == pytest.approx(200 * 160_000, rel=0.05)
    assert not {"once", "scratch", "<listcomp>"} & {line.function for line in growth}


def test_no_more_lines_than_asked_for(recording):
    found = allocating_lines(recording[1], top=1)
    assert len(found.peak) == len(found.growth) == 1


def test_a_killed_run_tells_what_it_can(tmp_path, capfd):
    script, file = record(tmp_path, "--killed")
    found = allocating_lines(file)
    assert found.growth[0].line == line_of(script, "kept.append")

    content = file.read_bytes()  # and cut off in the middle, as by a full disk
    file.write_bytes(content[: len(content) * 3 // 4])
    assert allocating_lines(file).peak
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("size", [None, 0, 10, 30])
def test_a_file_that_says_nothing_is_an_error_in_one_line(recording, tmp_path, size, capfd):
    file = tmp_path / "memray-2.bin"
    if size is not None:
        file.write_bytes(recording[1].read_bytes()[:size])
    with pytest.raises(RuntimeError, match=r"memray-2\.bin cannot be read") as raised:
        allocating_lines(file)
    assert "\n" not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_without_memray_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "memray", None)
    with pytest.raises(RuntimeError, match=r'pip install "unstall\[memory\]"'):
        allocating_lines(tmp_path / "memray-1.bin")


def test_the_users_frame_is_the_deepest_outside_of_libraries():
    stack = [
        ("ones", "/venv/lib/python3.12/site-packages/numpy/core.py", 5),
        ("_find_and_load", "<frozen importlib._bootstrap>", 7),
        ("dumps", "/usr/lib/python3.12/json/__init__.py", 9),
        ("step", "/home/me/my project/train.py", 3),
        ("main", "/home/me/my project/train.py", 30),
    ]
    assert program_site(stack) == stack[3]
    assert program_site(stack[:3]) is None
    assert program_site([]) is None


@given(st.lists(st.floats(0, 1), max_size=30))
def test_growth_needs_several_moments_far_apart_until_the_end(progress):
    grows = keeps_growing(progress)
    if len(set(progress)) < 3 or max(progress) < 0.75 or max(progress) - min(progress) < 0.2:
        assert not grows
    assert keeps_growing([*progress, 0.1, 0.5, 0.9])


def test_the_recording_is_only_read(recording):
    file = recording[1]
    before = file.read_bytes()
    allocating_lines(file)
    assert file.read_bytes() == before
    assert sorted(os.listdir(file.parent)) == ["memray-1.bin", "program.py"]
