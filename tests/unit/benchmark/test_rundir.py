"""Where recordings go, and where else when that place takes none."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time

import pytest

from unstall.benchmark import rundir, state


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A temporary directory of the test's own."""
    path = tmp_path / "tmp"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "my project"
    path.mkdir()
    return path


def test_a_run_has_a_private_directory_in_the_projects_state(project, monkeypatch):
    monkeypatch.chdir(project)
    made = rundir.make()
    assert made.path == state.home(project) / "runs" / made.id
    assert made.note is None
    assert list(made.path.iterdir()) == list(project.iterdir()) == []
    assert made.path.stat().st_mode & 0o077 == 0


def test_git_is_told_to_ignore_it_and_the_users_word_is_kept(project):
    (project / ".unstall").mkdir()
    rundir.make(project)
    ignore = project / ".unstall" / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.write_text("mine\n")
    rundir.make(project)
    assert ignore.read_text() == "mine\n"


def test_a_run_is_found_where_there_was_no_room_for_it_either(project, temporary):
    made = rundir.make(project)
    other = state.fallback(project) / "runs" / "99990101-000000-abcdef"
    other.mkdir(parents=True)
    assert rundir.list_runs(project) == [made.path, other]
    assert rundir.find("last", project) == other and rundir.find(made.id, project) == made.path


def test_a_removed_run_leaves_the_others(project):
    made, other = rundir.make(project), rundir.make(project)
    rundir.remove(made.path)
    assert rundir.list_runs(project) == [other.path]
    rundir.remove(other.path)
    assert not other.path.parent.exists()


def test_names_are_in_the_order_of_the_beginnings_within_a_second_too():
    names = []
    for _ in range(20):
        names.append(rundir.new_id())
        time.sleep(0.001)
    assert names == sorted(names)
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", name) for name in names)


def test_two_runs_at_once_do_not_meet(project):
    made = [rundir.make(project) for _ in range(20)]
    assert len({run.path for run in made}) == 20


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_place_that_takes_no_file_gives_way_to_the_temporary_directory(project, temporary, monkeypatch, error):
    real = os.posix_fallocate
    refused = []

    def fallocate(fd, offset, length):
        if not refused:
            refused.append(fd)
            raise OSError(error, os.strerror(error))
        real(fd, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    made = rundir.make(project)
    assert temporary in made.path.parents
    assert made.path.is_dir()
    assert os.strerror(error) in made.note
    assert str(made.path.parent) in made.note
    assert not state.home(project).exists()  # nothing half-made is left


def test_a_place_that_is_a_file_gives_way_too(project, temporary, monkeypatch):
    (project / "mine").write_text("mine")
    monkeypatch.setenv("UNSTALL_STATE", "mine")
    made = rundir.make(project)
    assert temporary in made.path.parents
    assert (project / "mine").read_text() == "mine"


def test_where_no_place_takes_a_file_it_is_an_os_error(project, temporary, monkeypatch):
    def fallocate(fd, offset, length):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        rundir.make(project)
    assert not state.home(project).exists() and list(temporary.iterdir()) == []


def test_earlier_runs_survive_a_disk_that_is_full_now(project, temporary, monkeypatch):
    earlier = rundir.make(project)
    (earlier.path / "report.json").write_text("{}")
    monkeypatch.setattr(os, "posix_fallocate", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError):
        rundir.make(project)
    assert (earlier.path / "report.json").read_text() == "{}"


def test_discarding_removes_recordings_and_keeps_what_was_asked_for(project):
    made = rundir.make(project)
    for name in ("rec-1.bin", "rec-22.bin", "info-1.jsonl", "bootstrap-error.txt", "stacks-1.txt"):
        (made.path / name).write_text("x")
    (made.path / "profile.html").write_text("x")
    made.discard_recordings()
    assert [path.name for path in made.path.iterdir()] == ["profile.html"]
    (made.path / "profile.html").unlink()
    made.discard_recordings()
    assert not made.path.exists()
    made.discard_recordings()  # once more harms nothing
