"""Folders that are claimed, and those that nobody claims any more."""

import fcntl
import os
import signal
import subprocess
import sys

import pytest

from unstall.sandbox import leftovers


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "home-1"
    made.mkdir()
    return made


def abandoned(folder):
    return [path for path, _ in leftovers.abandoned([folder.parent], "home-")]


def test_a_folder_is_claimed_once_and_abandoned_when_the_claim_is_closed(folder):
    assert abandoned(folder) == []  # nobody has claimed it yet: it is being made
    first = leftovers.claim(folder)
    assert leftovers.claim(folder) is None
    assert abandoned(folder) == []
    first.close()
    assert abandoned(folder) == [folder]
    again = leftovers.claim(folder)
    assert again is not None and os.listdir(folder) == [".claimed"]
    again.close()


def test_no_other_start_sees_a_folder_before_it_is_claimed(folder, monkeypatch):
    """At each step of claiming it, another start looks for what is abandoned."""
    seen = []
    lock = fcntl.flock

    def look_and_lock(*arguments):
        monkeypatch.undo()
        seen.append(abandoned(folder))
        lock(*arguments)
        seen.append(abandoned(folder))

    monkeypatch.setattr(fcntl, "flock", look_and_lock)
    claim = leftovers.claim(folder)
    assert claim is not None and seen == [[], []]
    claim.close()


def test_a_claim_of_a_process_that_is_killed_ends(folder):
    program = "import sys, time; from pathlib import Path; from unstall.sandbox import leftovers\n"
    program += "claim = leftovers.claim(Path(sys.argv[1])); print('claimed', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program, folder], stdout=subprocess.PIPE) as owner:
        assert owner.stdout.readline() == b"claimed\n"
        assert abandoned(folder) == []
        owner.send_signal(signal.SIGKILL)
    assert abandoned(folder) == [folder]
