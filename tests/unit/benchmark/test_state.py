"""Where the runs and the ledger of a project are, and where else when that place takes none."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from unstall.benchmark import state


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "my project"
    path.mkdir()
    return path


def test_a_project_has_a_folder_of_its_own_in_the_users_state(project, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = state.home(project)
    assert home.parent == tmp_path / "state" / "unstall" and home.name.startswith("my project-")
    monkeypatch.chdir(project)
    assert state.home() == home
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("value", ["", "relative"])
def test_without_a_proper_variable_it_is_in_the_users_home(project, tmp_path, monkeypatch, value):
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state.home(project).parent == tmp_path / ".local" / "state" / "unstall"


def test_projects_of_one_name_do_not_share_it(project, tmp_path):
    other = tmp_path / "other" / "my project"
    other.mkdir(parents=True)
    assert state.home(project) != state.home(other)


def test_links_lead_to_the_same_state(project, tmp_path):
    (tmp_path / "link").symlink_to(project)
    assert state.home(tmp_path / "link") == state.home(project)


def test_a_name_of_any_length_and_alphabet_makes_a_folder(tmp_path):
    project = tmp_path / ("数" * 80)
    project.mkdir()
    state.home(project).mkdir(parents=True)
    assert state.home(Path("/")).name.startswith("root-")


def test_the_folder_that_is_in_the_project_already_is_used(project):
    (project / ".unstall").write_text("a file is none")
    assert project not in state.home(project).parents
    (project / ".unstall").unlink()
    (project / ".unstall").mkdir()
    assert state.home(project) == project / ".unstall"


@pytest.mark.parametrize("named, meant", [(".unstall", "{project}/.unstall"), ("/else/where", "/else/where")])
def test_the_variable_names_it(project, monkeypatch, named, meant):
    monkeypatch.setenv("UNSTALL_STATE", named)
    assert str(state.home(project)) == meant.format(project=project)


def test_a_user_without_a_home_has_it_in_the_temporary_folder(project, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as of a user whom no database knows
    assert state.home(project) == state.fallback(project)


def test_where_files_cannot_be_made_the_temporary_folder_stands_in(project, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert state.writable(project) == state.home(project)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) == tmp_path)
    assert state.writable(project) == state.fallback(project)
    assert tmp_path in state.fallback(project).parents


def test_the_docs_move_an_old_folder_there(project, tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "history.md").read_text()
    commands = [line.strip() for line in page.splitlines() if line.startswith(("    mkdir", "    mv"))]
    (project / ".unstall" / "runs").mkdir(parents=True)
    own = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run(["sh", "-ec", "; ".join(commands)], cwd=project, env=own, check=True)
    own.pop("XDG_STATE_HOME")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", own)
        assert (state.home(project) / "runs").is_dir()
    assert list(project.iterdir()) == []
