"""From what was typed to what is started, and the one-line errors."""

from __future__ import annotations

import sys

import pytest

from unstall.benchmark.command import CommandError, resolve


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def executable(path):
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_script_is_run_by_this_python(folder):
    (folder / "train.py").write_text("")
    assert resolve(["train.py", "--epochs", "1"]) == [sys.executable, "train.py", "--epochs", "1"]


@pytest.mark.parametrize("name", ["my train.py", "überlauf.py", "-weird/train.py", "train"])
def test_names_with_spaces_and_non_ascii_are_passed_on(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("")
    word = f"./{name}"
    assert resolve([word, "x"]) == [sys.executable, word, "x"]


def test_an_executable_script_that_ends_in_py_is_still_run_by_this_python(folder):
    executable(folder / "train.py")
    assert resolve(["train.py"]) == [sys.executable, "train.py"]


def test_another_executable_file_is_started_itself(folder):
    path = executable(folder / "train.sh")
    assert resolve(["train.sh", "-v"]) == [str(path), "-v"]


def test_a_module_is_run_by_this_python():
    assert resolve(["-m", "package.train", "-x"]) == [sys.executable, "-m", "package.train", "-x"]


def test_a_folder_with_a_main_is_run_by_this_python(folder):
    (folder / "app").mkdir()
    (folder / "app" / "__main__.py").write_text("")
    assert resolve(["app", "y"]) == [sys.executable, "app", "y"]


def test_a_program_on_the_path_is_found(folder, monkeypatch):
    (folder / "bin").mkdir()
    path = executable(folder / "bin" / "some-launcher")
    monkeypatch.setenv("PATH", str(folder / "bin"))
    assert resolve(["some-launcher", "train.py"]) == [str(path), "train.py"]


def test_the_tools_of_this_environment_are_found_without_the_path(folder, monkeypatch):
    (folder / "bin").mkdir()
    tool = executable(folder / "bin" / "torchrun")
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))
    monkeypatch.setenv("PATH", "")
    assert resolve(["torchrun", "--nproc-per-node", "2"])[0] == str(tool)


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "nothing to run"),
        (["-m"], "name of a module"),
        (["--stepz", "3", "train.py"], "no such option: --stepz"),
        (["missing.py"], "no such file: missing.py"),
        (["missing/train"], "no such file: missing/train"),
        (["no-such-program-anywhere"], "neither a file nor a program"),
        (["empty"], "directory without a __main__.py"),
    ],
)
def test_what_cannot_be_started_is_said_in_one_line(folder, words, says):
    (folder / "empty").mkdir()
    with pytest.raises(CommandError) as caught:
        resolve(words)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
