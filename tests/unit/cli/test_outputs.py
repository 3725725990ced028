"""What every verb does with its answer."""

import os
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from makers import kept

from unstall.cli.exits import Exit
from unstall.cli.outputs import Outputs, deliver, write
from unstall.records.what_if import WhatIf, WhatIfReport
from unstall.report import what_if_view
from unstall.runs.errors import Refused

ANSWER = WhatIfReport(
    run="r",
    command=["t.py"],
    recorded_step_s=0.02,
    answers=[
        WhatIf(
            changes="workers 2", step_s=0.01, low=0.009, high=0.011, speedup=2.0, speedup_low=1.8, speedup_high=2.2,
            bottleneck="the model",
        )
    ],
    elasticities={"data": 1.0},
)  # fmt: skip


def test_a_folder_that_is_missing_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Outputs(tmp_path / "report.json", markdown=tmp_path.relative_to(tmp_path) / "here.md")
    with pytest.raises(Refused, match=f"no folder {tmp_path / 'gone'}"):
        Outputs(tmp_path / "report.json", tmp_path / "gone" / "report.md")


def test_only_one_form_goes_to_stdout(tmp_path):
    from pathlib import Path

    with pytest.raises(Refused, match="only one of"):
        Outputs(Path("-"), Path("-"))


def test_each_form_goes_to_its_file_and_the_answer_to_the_screen(tmp_path, capsys):
    outputs = Outputs(tmp_path / "a.json", tmp_path / "a.md", tmp_path / "a.html")
    assert deliver(what_if_view, ANSWER, outputs, archive=kept(np.full(60, 0.1))) == Exit.OK
    assert msgspec.json.decode((tmp_path / "a.json").read_bytes(), type=WhatIfReport) == ANSWER
    assert (tmp_path / "a.md").read_text().startswith("### unstall what-if\n\n**2× as fast")
    assert (tmp_path / "a.html").read_text().lower().startswith("<!doctype html>")
    assert "2× as fast" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_what_goes_to_stdout_goes_there_alone(form, capfdbinary):
    from pathlib import Path

    deliver(what_if_view, ANSWER, Outputs(**{form: Path("-")}))
    out = capfdbinary.readouterr().out
    assert out == (
        msgspec.json.format(msgspec.json.encode(ANSWER)) + b"\n"
        if form == "json"
        else what_if_view.markdown(ANSWER).encode()
    )


def test_a_file_that_cannot_be_written_is_told_and_the_others_are(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    outputs = Outputs(tmp_path / "folder", tmp_path / "a.md")
    assert deliver(what_if_view, ANSWER, outputs) == Exit.REFUSED
    assert (tmp_path / "a.md").exists()
    captured = capsys.readouterr()
    assert captured.err == f"unstall: cannot write {tmp_path / 'folder'}: Is a directory\n"
    assert "2× as fast" in captured.out


def test_bytes_are_written_as_they_are(tmp_path):
    assert write(tmp_path / "patch", b"no end of line")
    assert (tmp_path / "patch").read_bytes() == b"no end of line"


def test_a_reader_who_is_gone_is_no_failure_and_what_comes_after_is_done():
    program = """
import os, sys
from rich.console import Console
from unstall.cli.outputs import ignore_broken_pipe
with ignore_broken_pipe(sys.stdout):
    for _ in range(10_000):
        Console().print("a line of a long report")
print("more, to nobody")
os.write(2, b"kept")
"""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([sys.executable, "-c", program], stdout=write_end, stderr=subprocess.PIPE, timeout=60)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"kept")
