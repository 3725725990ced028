"""A program under `unstall run` is what it is without: its output, its end, its files, what is left of it.

`make attack` runs every case, as root and as an ordinary user; `make test` those that start quickly, as who runs it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from harness import Result, Workspace, assert_same

from .catalogue import endings, files, interpreter, libraries, processes, streams

CASES = [
    case for kind in (endings, streams, interpreter, files, processes, libraries) for case in kind.CASES
]  # fmt: skip
_YEARS_AGO_NS = 1_500_000_000 * 10**9
_EXCEPTIONS = Path(__file__).parents[2] / "docs" / "how-it-works.md"
_NOBODY = 65534
_ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")
_AS_NOBODY = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--")


def snapshot(folder: Path) -> dict[str, tuple]:
    """Every file: kind and mode, owner, whether it is as old as it was laid down, links, content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            content = os.readlink(path) if stat.S_ISLNK(facts.st_mode) else ""
        is_old = facts.st_mtime_ns == _YEARS_AGO_NS
        name = str(path.relative_to(folder))
        found[name] = (oct(facts.st_mode), facts.st_uid, facts.st_gid, facts.st_nlink, is_old, content)
    return found


def lay_down(workspace: Workspace, case, owner: int) -> None:
    """The program and its files, as if they had lain there for years."""
    shutil.rmtree(workspace.folder, ignore_errors=True)
    workspace.folder.mkdir()
    for name, content in {"program.py": case.source, **case.files}.items():
        path = workspace.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for path in (*workspace.folder.rglob("*"), workspace.folder):
        os.utime(path, ns=(_YEARS_AGO_NS, _YEARS_AGO_NS))
        os.chown(path, owner, owner)


def command(case) -> list[str]:
    """The words that start it, without unstall."""
    if (case.options and case.options[-1] == "program") or (case.options and not (case.source)):
        return [sys.executable, *case.options, *case.words]
    return [sys.executable, *case.options, "program.py", *case.words]


def run(workspace, case, words, owner, report_path=None):
    """The result of a program, and the files that it leaves."""
    lay_down(workspace, case, owner)
    if case.shell:
        words = ["sh", "-c", f'exec "$@" {case.shell}', "sh", *words]
    if owner != os.getuid():
        words = [*_AS_NOBODY, *words]
    home = workspace.beside / "home"
    home.mkdir(exist_ok=True)
    os.chown(home, owner, owner)
    environment = {"XDG_STATE_HOME": str(home), "HOME": str(home), **case.environment}
    result = workspace.start(words, env=environment, stdin=case.stdin, report_path=report_path).result()
    return result, snapshot(workspace.folder)


def without_addresses(result: Result) -> Result:
    """What it wrote, without where objects lie in memory."""
    streams = {name: _ADDRESS.sub(b"0x", getattr(result, name)) for name in ("stdout", "stderr")}
    return replace(result, **streams)


def differences(plain: dict, watched: dict) -> dict:
    """Files that are not the same, but for unstall's own folder, which is there because no other was to be had."""
    return {
        name: (plain.get(name), watched.get(name))
        for name in {*plain, *watched}
        if plain.get(name) != watched.get(name) and name.split("/")[0] != ".unstall"
    }


@pytest.fixture
def workspace(tmp_path):
    """A workspace that an ordinary user may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o711)
    made = Workspace(tmp_path)
    yield made
    made.close()


def judge(workspace, case, owner):
    """Run a case without unstall and with it, and compare."""
    for module in case.needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    plain, files_before = run(workspace, case, command(case), owner)
    beside = workspace.beside / "report"
    beside.mkdir()
    os.chown(beside, owner, owner)
    words = [sys.executable, "-m", "unstall", "run", "--json", str(beside / "report.json"), *command(case)]
    watched, files_after = run(workspace, case, words, owner)
    if case.noticed:
        assert f"- **{case.noticed}**" in _EXCEPTIONS.read_text(encoding="utf-8")
        assert (plain.stdout, files_before) != (watched.stdout, files_after)
        return
    assert_same(without_addresses(plain), without_addresses(watched))
    assert differences(files_before, files_after) == {}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.attack if case.heavy else ()) for case in CASES], ids=str
)
def test_nothing_differs(workspace, case):
    judge(workspace, case, os.getuid())


@pytest.mark.attack
@pytest.mark.timeout(120)
@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_differs_for_an_ordinary_user(workspace, case):
    judge(workspace, case, _NOBODY)


def test_every_case_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES) >= 300
