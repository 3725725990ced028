"""What a program does to files in the sandbox is not done to the user's: every way to write, as root and as an ordinary user.

One driver a user opens the sandbox and runs every attack in it; before and after each, the real files are compared
from outside.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import unstall

from .catalogue import writes

_SOURCE = Path(unstall.__file__).parents[1]
_NOBODY = 65534
_LEAVES_BY_DESIGN = {
    # docs/sandbox.md: the sandbox does not hold back a program of root's that wants to leave it.
    "python: the first namespace",
    "python: the parent's namespace",
    "shell: nsenter",
    "shell: nsenter of the parent",
    "python: name_to_handle",
}
_DRIVER = """
import hashlib, json, os, stat, subprocess, sys
source, keep, asked = sys.argv[1:]
asked = json.load(open(asked))
sys.path.insert(0, source)
from pathlib import Path
from unstall.sandbox import open_sandbox

def snapshot():
    found = {}
    for place in asked["places"]:
        for folder, folders, files in os.walk(place):
            for path in [folder, *(os.path.join(folder, name) for name in files)]:
                facts = os.lstat(path)
                content = sorted(folders + files) if path == folder else ""
                if stat.S_ISREG(facts.st_mode):
                    content = hashlib.sha256(open(path, "rb").read()).hexdigest()
                elif stat.S_ISLNK(facts.st_mode):
                    content = os.readlink(path)
                found[path] = [facts.st_mode, facts.st_uid, facts.st_gid, facts.st_nlink, facts.st_mtime_ns, content]
    return found

results = {}
os.chdir(asked["places"][0])
with open_sandbox(Path.cwd(), [Path(keep)]) as sandbox:
    results["force"] = sandbox.force
    before = snapshot()
    for name, (interpreter, attack) in asked["attacks"].items():
        for place in asked["places"]:
            words = [sys.executable, "-c", attack] if interpreter == "python" else ["/bin/sh", "-c", attack]
            try:
                done = subprocess.run(sandbox.command(words), cwd=place, env=sandbox.environment(dict(os.environ)),
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
                told = done.stderr.decode(errors="replace")[-300:]
            except Exception as error:
                told = repr(error)
            after = snapshot()
            changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
            results.setdefault(name, []).append({"changed": changed, "told": told})
            if changed:
                before = after
print(json.dumps(results))
"""


def watched(place: str) -> list:
    """What an attack could change in a folder: names, modes, times."""
    return sorted(
        (str(path), path.lstat().st_mode, path.lstat().st_mtime_ns) for path in [Path(place), *Path(place).rglob("*")]
    )


def lay_out(base: Path, owner: int) -> list[str]:
    """Three folders that an experiment could harm: its own, one of the home directory, one for temporary files."""
    places = []
    for name in ("project", "home/data", "temporary/other"):
        place = base / name
        (place / "folder").mkdir(parents=True)
        (place / "file").write_text("years of work")
        (place / "folder" / "file").write_text("more years of work")
        (place / "link").symlink_to("file")
        database = sqlite3.connect(place / "db.sqlite")
        database.execute("create table runs (name)")
        database.commit()
        database.close()
        places.append(str(place))
    for path in (base, *base.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)
    return places


def attack(owner: int) -> dict:
    """What became of the real files under each attack: results by name, and the means that were in force."""
    python = sys.executable if owner == os.getuid() else shutil.which("python3", path="/usr/bin:/usr/local/bin")
    drop = [] if owner == os.getuid() else ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups", "--"]
    looks = "import sys; sys.path.insert(0, sys.argv[1]); import unstall; assert sys.version_info >= (3, 10)"
    if python is None or subprocess.run([*drop, python, "-c", looks, _SOURCE], capture_output=True).returncode:
        pytest.skip("no interpreter here that another user can run")
    if subprocess.run([*drop, "unshare", "--user", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("an overlay is not possible here: namespaces are not allowed")
    base = Path(tempfile.mkdtemp(prefix="attacked-"))
    try:
        base.chmod(0o755)
        places = lay_out(base, owner)
        keep = base / "keep"
        keep.mkdir()
        os.chown(keep, owner, owner)
        asked = base / "asked.json"
        asked.write_text(json.dumps({"places": places, "attacks": writes.CASES}))
        environment = {**os.environ, "HOME": str(base / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
        words = [*drop, python, "-c", _DRIVER, str(_SOURCE), str(keep), str(asked)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def results_of_this_user():
    return attack(os.getuid())


@pytest.fixture(scope="module")
def results_of_an_ordinary_user():
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    return attack(_NOBODY)


def judge(results, name):
    if results["force"] != "overlay":
        pytest.skip("an overlay is not possible here")
    assert [found for found in results[name] if found["changed"]] == []


@pytest.mark.attack
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", writes.CASES)
def test_no_real_file_changes(results_of_this_user, name):
    if os.getuid() == 0 and name in _LEAVES_BY_DESIGN:
        pytest.skip("docs/sandbox.md: a program of root's that wants to leave the sandbox can")
    judge(results_of_this_user, name)


@pytest.mark.attack
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", writes.CASES)
def test_no_real_file_changes_for_an_ordinary_user(results_of_an_ordinary_user, name):
    judge(results_of_an_ordinary_user, name)


@pytest.mark.attack
@pytest.mark.timeout(300)
def test_without_the_sandbox_the_attacks_change_files(tmp_path):
    changing = 0
    for number, (interpreter, source) in enumerate(writes.PLAIN.values()):
        base = tmp_path / str(number)
        place = lay_out(base, os.getuid())[0]
        before = watched(place)
        words = [sys.executable if interpreter == "python" else "/bin/sh", "-c", source]
        subprocess.run(words, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        changing += watched(place) != before
        shutil.rmtree(base)
    assert changing >= 0.9 * len(writes.PLAIN)
