"""What an agent is told, and what is taken of what it did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from optimize_builders import make_diagnosis, make_finding, make_report

from unstall.optimize import agent_process
from unstall.optimize.agent import AgentChange
from unstall.optimize.brief import brief, ceiling
from unstall.optimize.patch import apply as patching
from unstall.optimize.patch.diff import unified
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.source.files import Sources
from unstall.records.remedies import RemedyStatus
from unstall.records.report import Culprit


def test_the_brief_says_what_stalls_what_it_is_worth_and_what_became_of_each_change():
    culprit = Culprit(file="train.py", line=5, function="load", share=0.5, code="x = load()")
    finding = make_finding("input-bound", culprit=culprit, headroom=2.5, summary="half of each step waits")
    state = make_diagnosis(report=make_report(findings=[finding]))
    attempt = Attempt(AgentChange("close"), Proposal("change 1: train.py", 2.0, ""))
    attempt.end(RemedyStatus.NOT_EQUIVALENT, "loss.0 differs")
    text = brief(["train.py", "--epochs", "3"], state, [attempt], ["no Python file was changed"])
    for part in (
        "train.py --epochs 3", "half of each step waits", "load train.py:5", "2.50×", "loss.0 differs",
        "no Python file was changed",
    ):  # fmt: skip
        assert part in text
    assert ceiling(state) == 2.5


def test_python_files_that_a_command_changed_or_added_are_taken(tmp_path):
    root, out = tmp_path / "root", tmp_path / "out"
    out.mkdir()
    for name in ("train.py", "same.py", "gone.py", ".venv/hidden.py", "env/lib.py", "data.txt"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old\n")
    (root / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / "source-0").write_text("ours\n")
    command = (
        "cat same.py > seen.txt; rm gone.py; mkdir new; echo x > new/fast.py; echo y > train.py; echo z > data.txt;"
        "echo z > .venv/hidden.py; echo z > env/lib.py; exit 3"
    )
    sources = [[str(root / "same.py"), str(tmp_path / "source-0")]]
    manifest = {"root": str(root), "sources": sources, "command": command, "out": str(out)}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    subprocess.run(
        [sys.executable, "-I", "-S", agent_process.__file__, str(tmp_path / "manifest.json")], check=True, timeout=60
    )
    facts = json.loads((out / "changes.json").read_text())
    assert facts["status"] == 3 and facts["removed"] == [str(root / "gone.py")]
    assert (root / "seen.txt").read_text() == "ours\n"
    changed = {Path(path).relative_to(root).as_posix(): (out / copy).read_text() for path, copy in facts["changed"]}
    assert changed == {"train.py": "y\n", "new/fast.py": "x\n"}


def test_git_applies_a_patch_with_a_new_file(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    old, new = tmp_path / "train.py", tmp_path / "package" / "fast.py"
    old.write_text("slow\n")
    sources = Sources({old: b"import package.fast\n", new: b"fast = 1\n"})
    (tmp_path / "fast.patch").write_bytes(unified(sources, lambda path: tmp_path))
    subprocess.run(["git", "-C", str(tmp_path), "apply", "fast.patch"], check=True)
    assert old.read_text() == "import package.fast\n" and new.read_text() == "fast = 1\n"


def test_a_new_file_is_written_without_a_backup(tmp_path):
    old, new = tmp_path / "train.py", tmp_path / "package" / "fast.py"
    old.write_text("slow\n")
    done = patching.apply(Sources({old: b"quick\n", new: b"fast = 1\n"}))
    assert dict(done) == {old: tmp_path / "train.py.orig", new: None}
    assert new.read_text() == "fast = 1\n" and sorted(path.name for path in new.parent.iterdir()) == ["fast.py"]
