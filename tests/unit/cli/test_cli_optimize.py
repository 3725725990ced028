"""What a quarter of an hour has found is not lost where a file cannot be written."""

from pathlib import Path

import pytest
from optimize_builders import make_diagnosis, make_report

from unstall.cli import optimize
from unstall.optimize.optimize_report import Outcome
from unstall.optimize.program import Program
from unstall.optimize.search import Result

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no device here that is always full")
def test_a_patch_that_cannot_be_written_is_given_all_the_same(tmp_path, capfdbinary):
    program = Program(("train.py",), ("python", "train.py"), None, tmp_path)
    result = Result(make_diagnosis(), make_diagnosis(), stopped_by="budget")
    outcome = Outcome(make_report(), b"--- a/train.py\n", ())
    file = tmp_path / "report.json"
    failures = optimize._write_outputs(program, result, outcome, patch=FULL, json=file, with_file=None)
    assert failures == ["cannot write /dev/full: No space left on device: the patch is on stdout"]
    assert file.read_bytes() == outcome.report.to_json()
    assert capfdbinary.readouterr().out == b"--- a/train.py\n"
