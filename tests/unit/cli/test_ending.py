import os
import subprocess
import sys

import pytest
import typer

from unstall.cli import ending


def test_bad_input_ends_with_a_line_and_its_own_code(capsys):
    with pytest.raises(typer.Exit) as ended:
        ending.fail("no such file: give another")
    assert ended.value.exit_code == ending.EXIT_USAGE == 2
    assert capsys.readouterr().err == "unstall: no such file: give another\n"


def test_a_folder_that_is_missing_is_named_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ending.need_folders(None, tmp_path / "report.json", tmp_path.relative_to(tmp_path) / "here.json")
    with pytest.raises(typer.Exit):
        ending.need_folders(tmp_path / "report.json", tmp_path / "gone" / "report.md")
    assert f"no folder {tmp_path / 'gone'}" in capsys.readouterr().err


def test_a_reader_who_is_gone_is_no_failure_and_what_comes_after_is_done():
    program = """
import os, sys
from rich.console import Console
from unstall.cli.ending import whoever_reads
with whoever_reads(sys.stdout):
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
