"""Runs followed from outside, by files that this process itself records into."""

from __future__ import annotations

import json
import os
import time

import pytest
from recorders import load, silence

from unstall.benchmark import live
from unstall.benchmark.reader import read_latest, read_process
from unstall.records.vocabulary import Tick


@pytest.fixture
def run(tmp_path):
    """A run directory that this process records into, as the program of a run would."""
    directory = tmp_path / ".unstall" / "runs" / "20260101-000000-abcdef"
    directory.mkdir(parents=True)
    api = load("fallback")
    silence(api)
    api.open(str(directory / f"rec-{os.getpid()}.bin"))
    yield directory, api
    silence(api)


def train(directory, api, steps, pause=0.0005):
    names = {name: api.intern(name) for name in ("~forward", "~backward", "~optimizer")}
    lines = [json.dumps({"kind": "name", "id": number, "name": name}) for name, number in names.items()]
    (directory / f"info-{os.getpid()}.jsonl").write_text("\n".join(lines))
    for _ in range(steps):
        for name, number in names.items():
            if name == "~optimizer":
                api.tick(Tick.OPTIMIZER, number, None)
            api.begin(number)
            time.sleep(pause)
            api.end(number)


def test_a_run_is_followed(run):
    directory, api = run
    follower = live.RunFollower(directory)
    train(directory, api, 20)
    assert follower.look().steps == 20
    time.sleep(0.25)
    train(directory, api, 10)
    view = follower.look()
    assert (view.steps, view.ended) == (30, False)
    assert view.rate > 0
    assert view.phase_steps >= 25
    assert {"forward", "backward"} <= set(view.phases)
    assert view.usage["main process"].processes == 1
    (directory / "report.json").write_text("{}")
    assert follower.look().ended


def test_steps_are_counted_once(run):
    directory, api = run
    follower = live.RunFollower(directory)
    train(directory, api, 20)
    counted = follower.look().phase_steps
    assert follower.look().phase_steps == counted


def test_the_newest_run_in_progress_is_found(run, tmp_path):
    directory, _ = run
    assert live.find(folder=tmp_path) == directory
    assert live.find("2026", folder=tmp_path) == directory
    (directory / "report.json").write_text("{}")
    with pytest.raises(live.NothingToWatch, match="no run is in progress here"):
        live.find(folder=tmp_path)
    with pytest.raises(live.NothingToWatch, match="has ended; see it with: unstall report 2026"):
        live.find("last", folder=tmp_path)
    with pytest.raises(live.NothingToWatch, match="nonsense"):
        live.find("nonsense", folder=tmp_path)


def test_a_run_whose_processes_are_gone_has_ended(tmp_path):
    (tmp_path / "rec-4194304.bin").write_bytes(bytes(5000))
    assert live.RunFollower(tmp_path).look().ended
    with pytest.raises(live.NothingToWatch):
        live.find(str(tmp_path))


def test_a_directory_that_disappears_is_the_end(tmp_path):
    follower = live.RunFollower(tmp_path)
    assert not follower.look().ended
    tmp_path.rmdir()
    assert follower.look().ended


def test_the_latest_records_are_those_of_the_whole(run):
    directory, api = run
    train(directory, api, 3000, pause=0)  # more than the tail holds
    whole = read_process(directory, os.getpid())
    latest = read_latest(directory, os.getpid(), 500)
    assert (latest.spans == whole.spans[-500:]).all()
    assert (read_latest(directory, os.getpid(), 10**6).spans == whole.spans).all()
    assert latest.names == whole.names


def test_what_is_no_recording_is_a_value_error(tmp_path):
    (tmp_path / "rec-5.bin").write_bytes(b"something else" * 1000)
    with pytest.raises(ValueError):
        read_latest(tmp_path, 5, 10)
    with pytest.raises(OSError):
        read_latest(tmp_path, 6, 10)
