"""What a quarter of an hour has found is not lost where a file cannot be written."""

from pathlib import Path

import pytest

from unstall.cli import optimize
from unstall.optimize.source.files import Sources
from unstall.runs.optimize import Optimized

FULL = Path("/dev/full")


@pytest.fixture
def found(tmp_path, healthy_report):
    return Optimized(
        report=healthy_report,
        patch=b"--- a/train.py\n",
        remedies=b"# remedies\n",
        root=tmp_path,
        interval=None,
        remarks=[],
        interrupted=False,
        problem=None,
        sources=Sources(),
    )


@pytest.mark.skipif(not FULL.exists(), reason="no device here that is always full")
def test_a_patch_that_cannot_be_written_is_given_all_the_same(found, tmp_path, capfdbinary):
    assert not optimize._write(found, FULL, tmp_path / "remedies.toml")
    assert (tmp_path / "remedies.toml").read_bytes() == b"# remedies\n"
    captured = capfdbinary.readouterr()
    assert captured.out == b"--- a/train.py\n"
    assert captured.err.decode().splitlines() == [
        "unstall: cannot write /dev/full: No space left on device",
        "unstall: the patch is on stdout",
    ]


def test_without_a_file_it_is_said_how_to_have_the_patch(found, tmp_path):
    assert "--patch FILE" in optimize._about_patch(found, None)[0]
    assert "git apply fast.patch" in optimize._about_patch(found, Path("fast.patch"))[0]
