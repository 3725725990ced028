"""A program under `unstall run` is what it is without: its output, its end, its files, what is left of it.

`make attack` runs every case, as root and as an ordinary user; `make test` those that start quickly, as who runs it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import site
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness import Result, Workspace, assert_same

from .catalogue import endings, files, frameworks, interpreter, libraries, processes, streams

CASES = [
    case for kind in (endings, streams, interpreter, files, processes, libraries, frameworks) for case in kind.CASES
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


def command(case, python) -> list[str]:
    """The words that start it, without unstall."""
    if (case.options and case.options[-1] == "program") or (case.options and not (case.source)):
        return [python, *case.options, *case.words]
    return [python, *case.options, "program.py", *case.words]


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


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user may enter. pytest shuts its own again whenever somebody starts another one."""
    folder = Path(tempfile.mkdtemp(prefix="attacked-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def workspace():
    with open_folder() as folder:
        made = Workspace(folder)
        yield made
        made.close()


@pytest.fixture(scope="session")
def ordinary_python():
    """An interpreter that an ordinary user can start, with what is installed here: this one may lie in root's home."""
    if _serves_nobody(sys.executable):
        yield sys.executable
        return
    system = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")
    if system is None:
        pytest.skip("no interpreter of this version here that another user can run")
    with open_folder() as folder:
        subprocess.run([system, "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        lines = [f"import site; site.addsitedir({path!r})" for path in site.getsitepackages()]
        (packages / "installed.pth").write_text("\n".join(lines))
        python = str(folder / "bin" / "python")
        if not _serves_nobody(python):
            pytest.skip("what is installed here is not for another user to read")
        yield python


def _serves_nobody(python: str) -> bool:
    """Whether an ordinary user can start unstall with it, and what unstall starts."""
    asks = "import subprocess, sys, unstall.cli.main; sys.exit(subprocess.call([sys.executable, '-c', 'import torch']))"
    return subprocess.run([*_AS_NOBODY, python, "-c", asks], cwd="/", capture_output=True).returncode == 0


def judge(workspace, case, owner, python=sys.executable):
    """Run a case without unstall and with it, and compare."""
    for module in case.needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    plain, files_before = run(workspace, case, command(case, python), owner)
    beside = workspace.beside / "report"
    beside.mkdir()
    os.chown(beside, owner, owner)
    words = [python, "-m", "unstall", "run", "--json", str(beside / "report.json"), *command(case, python)]
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
def test_nothing_differs_for_an_ordinary_user(workspace, case, ordinary_python):
    judge(workspace, case, _NOBODY, ordinary_python)


def test_every_case_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES) >= 300
