"""The GitHub Actions examples: what they type exists, and their shell does what its comments say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from unstall.cli.main import VERBS, app

yaml = pytest.importorskip("yaml")

_FOLDER = Path(__file__).parents[3] / "examples" / "github-actions"
_PROGRAM = "train.py --epochs 1"


def _job(name):
    workflow = yaml.safe_load((_FOLDER / f"unstall-{name}.yml").read_text())
    assert set(workflow[True]) == {"pull_request"}  # YAML 1.1 reads "on" as true, as GitHub's own parser does not
    return workflow["jobs"][name]


@pytest.fixture(scope="module", params=["gate", "prove"])
def any_job(request):
    return request.param, _job(request.param)


@pytest.fixture(scope="module")
def job():
    return _job("gate")


def _scripts(job):
    return {step.get("name", "install"): step["run"] for step in job["steps"] if "run" in step}


def _commands(job):
    """The words of each command of ours, without redirections, the variables filled in."""
    for script in _scripts(job).values():
        for line in script.replace("\\\n", " ").splitlines():
            if line.strip().startswith("unstall "):
                line = line.partition(">")[0].replace("$PROGRAM", _PROGRAM).replace('"$BASE"', "origin/main")
                yield shlex.split(line)


def test_its_commands_parse(any_job):
    name, job = any_job
    found = {}
    for _, verb, *words in _commands(job):
        assert verb in VERBS
        command = app.get_command(None, verb)
        with command.make_context(verb, words) as context:
            found[verb] = context.params
    assert set(found) == {"gate": {"gate", "run"}, "prove": {"prove"}}[name]
    for params in found.values():  # an option that we do not know would be the program's first word
        assert list(params["words"]) == _PROGRAM.split()
    if name == "gate":
        assert found["gate"]["baseline"] == "origin/main" and not found["gate"]["required"]
    else:
        assert found["prove"]["against"] == "origin/main"
    assert job["env"]["PROGRAM"] == _PROGRAM


def test_its_steps_are_pinned_and_know_each_other(any_job):
    name, job = any_job
    text = (_FOLDER / f"unstall-{name}.yml").read_text()
    ids = {step["id"] for step in job["steps"] if "id" in step}
    assert set(re.findall(r"steps\.(\w+)\.", text)) <= ids
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step)
        assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
        # Values of a pull request reach a shell through variables only, or they would be code.
        assert "${{" not in step.get("run", "")


class _Runner:
    """Runs a step's script as a runner does, with stand-ins for the commands that it calls."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "bin").mkdir()

    def stand_in(self, name, script):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def run(self, script, **variables):
        environment = {
            "PATH": f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "shown"),
            "PROGRAM": _PROGRAM,
            "BASE": "origin/main",
            **variables,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def read(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def runner(tmp_path):
    return _Runner(tmp_path)


@pytest.mark.parametrize("code, status", [(0, 0), (1, 1), (2, 0), (130, 130)])
def test_of_the_answers_only_a_proven_regression_refuses(job, runner, code, status):
    runner.stand_in("unstall", f'echo "$@" > called; echo "{{}}" > gate.json; exit {code}')
    done = runner.run(_scripts(job)["Gate"])
    assert done.returncode == status
    assert runner.read("output") == f"code={code}\n"
    assert ("::warning::" in done.stdout) == (code == 2)
    assert runner.read("called").split()[-3:] == _PROGRAM.split()


@pytest.mark.parametrize("code, status", [(0, 0), (10, 10), (11, 11), (12, 0), (13, 13), (2, 2), (130, 130)])
def test_a_claim_that_is_not_proven_is_refused(runner, code, status):
    runner.stand_in("unstall", f'echo "$@" > called; exit {code}')
    done = runner.run(_scripts(_job("prove"))["Prove"])
    assert done.returncode == status
    assert runner.read("output") == f"code={code}\n"
    assert ("::warning::" in done.stdout) == (code == 12)
    assert "--against origin/main" in runner.read("called")


def test_a_gate_without_an_answer_is_no_pass(job, runner):
    """One side could not be run, or took no step: then there is no gate.json."""
    runner.stand_in("unstall", "exit 2")
    done = runner.run(_scripts(job)["Gate"])
    assert done.returncode == 2 and "::warning::" not in done.stdout


_GH = """
case "$*" in
  *--paginate*) echo -n "$KNOWN" ;;
  *) echo "$@" > called; cat comment.md > posted ;;
esac
"""


@pytest.mark.parametrize("known, called", [("", "POST comments"), ("17\n", "PATCH comment/17")])
def test_there_is_one_comment(any_job, runner, known, called):
    name, job = any_job
    runner.stand_in("gh", _GH)
    (runner.folder / {"gate": "gate.md", "prove": "proof.md"}[name]).write_text("the answer\n")
    assert runner.run(_scripts(job)["Summary"]).returncode == 0
    done = runner.run(_scripts(job)["Comment"], KNOWN=known, COMMENTS="comments", COMMENT="comment")
    assert done.returncode == 0, done.stderr
    assert called in runner.read("called")
    assert runner.read("posted") == f"<!-- unstall {name} -->\nthe answer\n"
    assert runner.read("shown") == "the answer\n"
