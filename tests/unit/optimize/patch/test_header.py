"""The lines before the diff say how the same each change computes, and git passes over them."""

from __future__ import annotations

import subprocess

from unstall.optimize.optimize_report import header
from unstall.optimize.patch.diff import one_file
from unstall.records.remedies import TriedRemedy


def test_git_applies_a_patch_that_begins_with_what_was_measured(tmp_path):
    remedies = [
        TriedRemedy(name="memoize: price\n--- a/x", exactness="exact", kept=True, sameness="exact"),
        TriedRemedy(name="fused-optimizer: fused=True", exactness="close", kept=True, sameness="close"),
        TriedRemedy(name="threads: 1 thread", exactness="close", kept=False),
    ]
    text = header(remedies).decode()
    assert text.splitlines() == [
        "# memoize: price --- a/x: exact, the same results, bit for bit",
        "# fused-optimizer: fused=True: close, the same results but for rounding",
    ]
    (tmp_path / "train.py").write_bytes(b"a\nb\n")
    patch = header(remedies) + one_file(b"a\nb\n", b"a\nc\n", "train.py")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "apply", "-"], input=patch, check=True)
    assert (tmp_path / "train.py").read_bytes() == b"a\nc\n"
