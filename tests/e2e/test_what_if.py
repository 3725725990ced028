"""`unstall what-if`: record a run, then ask it."""

import json
import sys

import pytest
from harness import Workspace
from programs import SLOW_DATASET

WHAT_IF = (sys.executable, "-m", "unstall", "what-if")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A workspace in which a run of a slow dataset, made in the main process, is kept."""
    workspace = Workspace(tmp_path_factory.mktemp("what-if"))
    workspace.write("slow.py", SLOW_DATASET)
    result = workspace.watched("slow.py", options=["--steps", "40"])
    assert result.status == 0, result.err
    yield workspace
    workspace.close()


def ask(workspace, *words):
    return workspace.start([*WHAT_IF, *words]).result()


def test_workers_that_wait_are_predicted_to_help(recorded):
    path = recorded.beside / "answer.json"
    result = ask(recorded, "last", "--workers", "4", "--prefetch", "4", "--json", path)
    assert result.status == 0, result.err
    report = json.loads(path.read_bytes())
    (answer,) = report["answers"]
    assert report["known_by"] == "predicted" and answer["changes"] == "workers 4, prefetch 4"
    assert answer["speedup"] > 1.3 and answer["low"] <= answer["step_s"] <= answer["high"]
    assert sum(report["elasticities"].values()) == pytest.approx(1, abs=0.3)  # a busy machine stalls some steps
    assert "as fast, predicted" in result.out and "Limited by" in result.out


def test_a_function_by_its_samples(recorded):
    result = ask(recorded, "last", "--set", "Slow.__getitem__=0.1x", "--json", "-")
    assert result.status == 0, result.err
    (answer,) = json.loads(result.out)["answers"]
    assert answer["speedup"] > 1.3


def test_without_a_question_it_tells_what_would_help(recorded):
    run = next((recorded.state / "runs").iterdir())
    for name in (run.name, run.name[:-2], str(run)):
        result = ask(recorded, name)
        assert result.status == 0, result.err
        assert "workers 2" in result.out and "data 0.5x" in result.out and "Matters" in result.out


@pytest.mark.parametrize(
    "words, message",
    [
        (["last", "--set", "nothing=0.5x"], "no sampled function and no phase is called nothing"),
        (["last", "--set", "data=fast"], "neither a factor"),
        (["last", "--workers", "-3"], "workers must be at least 0"),
        (["last", "--set", "forward=async"], "the next step needs"),
        (["no-such-run"], "no run and no file"),
    ],
)
def test_bad_questions_are_refused_in_one_line(recorded, words, message):
    result = ask(recorded, *words)
    assert result.status == 2 and message in result.err and len(result.err.splitlines()) == 1


def test_a_report_alone_is_not_enough(recorded, tmp_path):
    run = next((recorded.state / "runs").iterdir())
    (tmp_path / "report.json").write_bytes((run / "report.json").read_bytes())
    result = ask(recorded, str(tmp_path / "report.json"))
    assert result.status == 2 and "holds no recorded steps" in result.err
