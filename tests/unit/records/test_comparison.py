"""What is said of several runs: an entry's program and code."""

import msgspec
import pytest

from unstall.records.comparison import Entry


def entry(**more):
    values = {
        "id": "20260102-030405-abcdef",
        "kind": "run",
        "project": "here",
        "started": "2026-01-02T03:04:05Z",
        "host": "box",
        "directory": "/w/.unstall/runs/a",
        "command": ["train.py"],
        "duration_s": 3600.0,
        "steps": 100,
        "pattern": "healthy",
    }
    return Entry(**values | more)


@pytest.mark.parametrize(
    "command, program",
    [
        (["train.py", "--epochs", "1"], "train.py"),
        (["-m", "pkg.train", "x"], "pkg.train"),
        (["torchrun", "--nproc-per-node", "2", "train.py"], "train.py"),
        (["./go"], "./go"),
        ([], ""),
    ],
)
def test_the_program_of_a_command(command, program):
    assert entry(command=command).program == program


@pytest.mark.parametrize(
    "revision, changes, code",
    [(None, None, "–"), ("c0ffee00" * 5, None, "c0ffee00"), ("c0ffee00" * 5, "abcdef", "c0ffee00+abcd")],
)
def test_two_runs_of_the_same_code_have_the_same_name_for_it(revision, changes, code):
    assert entry(revision=revision, changes=changes).code == code


def test_an_entry_without_what_it_needs_is_refused():
    with pytest.raises(msgspec.ValidationError, match="pattern"):
        msgspec.convert(
            {name: value for name, value in msgspec.structs.asdict(entry()).items() if name != "pattern"}, Entry
        )
