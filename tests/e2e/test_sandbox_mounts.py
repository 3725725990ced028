"""Nothing is written for real, however a machine's folders are mounted and whichever of them cannot be listed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import unstall
from unstall.sandbox import mountinfo

_SOURCE = Path(unstall.__file__).parents[1]
_ROOT, _NOBODY = 0, 65534
_PLACE = Path("/srv")
_MACHINE = "homes 711 root; homes/other 755 user tmpfs; homes/me 700 user; homes/me/work 755 user"
"""The usual one: home directories beside mounts in a folder that only root can list, as with homes over NFS."""

# Root's part, in a mount namespace of its own: lays out a machine, starts the experimenter, compares the real files.
_STAGE = """
import hashlib, json, os, subprocess, sys
asked = json.loads(sys.argv[1])
subprocess.run(["mount", "--bind", asked["base"], asked["place"]], check=True)
os.chmod(asked["place"], 0o755)
attacked = []
for name, mode, owner, *mounted in (entry.split() for entry in asked["machine"].split("; ")):
    path = os.path.join(asked["place"], name)
    os.makedirs(path, exist_ok=True)
    if mounted == ["tmpfs"]:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], check=True)
    elif mounted == ["bind"]:
        backing = os.path.join(asked["backing"], name.replace("/", "-"))
        os.makedirs(backing)
        subprocess.run(["mount", "--bind", backing, path], check=True)
    if owner == "user":
        for file in ("precious", "doomed"):
            with open(os.path.join(path, file), "w") as opened:
                opened.write("years of work")
            os.chown(os.path.join(path, file), asked["uid"], asked["uid"])
        os.chown(path, asked["uid"], asked["uid"])
        attacked.append(path)
    os.chmod(path, int(mode, 8))

def snapshot():
    found = {}
    for folder, folders, files in os.walk(asked["place"]):
        if os.path.basename(folder) == "keep":
            continue
        for path in [folder, *(os.path.join(folder, file) for file in files)]:
            facts = os.lstat(path)
            content = open(path).read() if path != folder else sorted(folders + files)
            found[path] = [facts.st_mode, facts.st_uid, facts.st_mtime_ns, content]
    return found

before = snapshot()
os.chdir(os.path.join(asked["place"], asked["work"]))
environment = dict(os.environ, HOME=os.path.join(asked["place"], asked["home"]), PYTHONDONTWRITEBYTECODE="1")
done = subprocess.run([*asked["driver"], json.dumps(attacked)], env=environment, capture_output=True, text=True)
after = snapshot()
changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
print(json.dumps({"changed": changed, "output": done.stdout, "errors": done.stderr}))
"""

# The ordinary user's part: one experiment in the sandbox.
_DRIVER = """
import json, os, subprocess, sys
from pathlib import Path
source, sabotage, keep, attack, word, attacked = sys.argv[1:]
sys.path.insert(0, source)
from unstall.sandbox import SandboxError, open_sandbox, overlay
exec(sabotage)
try:
    with open_sandbox(Path.cwd(), [Path(keep)]) as sandbox:
        words = [sys.executable, "-c", attack, attacked, word]
        done = subprocess.run(
            sandbox.command(words), env=sandbox.environment(dict(os.environ)), stdout=subprocess.PIPE, text=True
        )
        facts = {"force": sandbox.force, "note": sandbox.note, "status": done.returncode}
        print(json.dumps({**facts, "written": json.loads(done.stdout or "[]")}))
except SandboxError as error:
    print(json.dumps({"refused": str(error)}))
"""

_ATTACK = """
import json, os, sys
def overwrite(folder):
    assert open(os.path.join(folder, "precious")).read() == "years of work"
    open(os.path.join(folder, "precious"), "w").write("overwritten")
def delete(folder):
    os.unlink(os.path.join(folder, "doomed"))
def change_mode(folder):
    os.chmod(folder, 0o777)
def make(folder):
    open(os.path.join(folder, "new"), "w").close()
    written.append(folder)
written = []
for folder in json.loads(sys.argv[1]):
    for harm in (overwrite, delete, change_mode, make):
        try:
            harm(folder)
        except OSError as error:
            print(error, file=sys.stderr)
print(json.dumps(written))
"""


@pytest.fixture
def stage():
    made = _Stage()
    yield made
    made.close()


class _Stage:
    """A machine laid out by root in a mount namespace of its own, and an ordinary user's experiment there."""

    def __init__(self):
        python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
        if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare") or python is None:
            pytest.skip("only root can lay out mounts and become another user")
        used = [Path(path).resolve() for path in (_SOURCE, sys.executable, python)]
        if not _PLACE.is_dir() or any(path.is_relative_to(_PLACE) for path in used):
            pytest.skip(f"{_PLACE} is not there to lay out a machine in")
        self.python = python
        self.drop = ["setpriv", "--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"]
        looks = "import sys; sys.path.insert(0, sys.argv[1]); import unstall; assert sys.version_info >= (3, 10)"
        if subprocess.run([*self.drop, python, "-c", looks, _SOURCE], capture_output=True).returncode != 0:
            pytest.skip("no interpreter here that another user can run")
        for words in (["unshare", "--mount", "true"], [*self.drop, "unshare", "--user", "--mount", "true"]):
            if subprocess.run(words, capture_output=True).returncode != 0:
                pytest.skip("an overlay is not possible here: namespaces are not allowed")
        self.base = Path(tempfile.mkdtemp())
        (self.base / "machine").mkdir()

    def experiment(self, machine, *, home="homes/me", work="homes/me/work", word="", sabotage="", root=False):
        """What became of an experiment that attacks every folder of the user's: the driver's facts, and ``changed``."""
        keep = f"{_PLACE}/keep"
        attacker = [self.python, "-c", _DRIVER, str(_SOURCE), sabotage, keep, _ATTACK, word]
        asked = {
            "base": str(self.base / "machine"),
            "backing": str(self.base / "backing"),
            "place": str(_PLACE),
            "machine": f"keep 755 user; {machine}",
            "uid": _ROOT if root else _NOBODY,
            "home": home,
            "work": work,
            "driver": attacker if root else [*self.drop, *attacker],
        }
        words = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", _STAGE, json.dumps(asked)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["output"], found["errors"]
        return {**json.loads(found["output"]), "changed": found["changed"], "errors": found["errors"]}

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)


def written(facts):
    return {os.path.relpath(path, _PLACE) for path in facts["written"]} - {"keep"}


_MACHINES = [
    pytest.param(_MACHINE, {}, {"homes/other", "homes/me", "homes/me/work"}, id="home is a folder beside a mount"),
    pytest.param(
        "homes 711 root; homes/me 700 user bind; homes/me/work 755 user",
        {},
        {"homes/me", "homes/me/work"},
        id="home is a mount",
    ),
    pytest.param(
        "homes 711 root; homes/me 700 user bind; homes/me/work 755 user; homes/me/data 755 user tmpfs",
        {},
        {"homes/me", "homes/me/work", "homes/me/data"},
        id="home is a mount with a mount below",
    ),
    pytest.param(
        f"{_MACHINE}; homes/me/data 755 user bind",
        {},
        {"homes/other", "homes/me", "homes/me/work", "homes/me/data"},
        id="a mount below home",
    ),
    pytest.param(
        f"{_MACHINE}; team 711 root; team/other 755 user tmpfs; team/me 755 user; team/me/work 755 user",
        {"work": "team/me/work"},
        {"homes/other", "homes/me", "homes/me/work", "team/other", "team/me/work"},
        id="the working folder is below an unlistable one",
    ),
    pytest.param(
        f"{_MACHINE}; team 711 root; team/other 755 user tmpfs; team/me 755 user",
        {"word": f"--out={_PLACE}/team/me/new/run"},
        {"homes/other", "homes/me", "homes/me/work", "team/other", "team/me"},
        id="an argument names a folder below an unlistable one",
    ),
    pytest.param(
        "homes 755 root; homes/me 300 user; homes/me/work 755 user; homes/me/data 755 user tmpfs",
        {},
        {"homes/me/work", "homes/me/data"},
        id="home cannot be listed by its owner",
    ),
]

# The kernel's calls as they are before Linux 5.12.
_OLD_KERNEL = f"""
old = Path({str(_PLACE)!r}) / "keep" / "old_kernel.py"
old.write_text(f"import os, sys; sys.path.insert(0, {{str(overlay._ENTER.parent)!r}})\\n"
    "import kernel; kernel.make_tree_readonly = lambda target: False\\n"
    "import enter; os._exit(enter.main(sys.argv[1], sys.argv[2:]))")
overlay._ENTER = old
"""


def assert_unharmed(facts):
    assert [path for path in facts["changed"] if not mountinfo.inside(path, f"{_PLACE}/keep")] == []


@pytest.mark.parametrize("sabotage", ["", _OLD_KERNEL], ids=["", "without mount_setattr"])
@pytest.mark.parametrize(("machine", "options", "expected"), _MACHINES)
def test_mounts_in_folders_that_cannot_be_listed(stage, machine, options, expected, sabotage):
    facts = stage.experiment(machine, sabotage=sabotage, **options)
    assert_unharmed(facts)
    assert facts.get("force") == "overlay", facts
    assert facts["status"] == 0
    assert written(facts) == expected, facts


@pytest.mark.parametrize(("machine", "options", "expected"), _MACHINES)
def test_mounts_under_roots_own_sandbox(stage, machine, options, expected):
    facts = stage.experiment(machine, root=True, **options)
    assert_unharmed(facts)
    assert facts.get("force") == "overlay" and "(a mount namespace" in facts["note"], facts
    assert written(facts) >= expected, facts


def test_what_is_read_only_inside_is_named(stage):
    """A folder that the user may write to, below one that cannot be listed, and that nothing names."""
    facts = stage.experiment(f"{_MACHINE}; homes/shared 777 root; homes/mine 755 user")
    assert_unharmed(facts)
    assert f"read-only inside: {_PLACE}/homes except {_PLACE}/homes/me" in facts["note"]
    assert written(facts) == {"homes/other", "homes/me", "homes/me/work"}


@pytest.mark.parametrize("root", [False, True], ids=["ordinary user", "root"])
def test_a_mount_that_would_be_written_to_for_real_is_refused(stage, root):
    """Whatever the plan is: the tree is looked at before the program starts."""
    sabotage = f"""
planned = overlay.plan
def wrong(*arguments, **options):
    found = planned(*arguments, **options)
    found.steps.append(type(found.steps[0])("bind", "{_PLACE}/homes/other"))
    return found
overlay.plan = wrong
"""
    facts = stage.experiment(_MACHINE, sabotage=sabotage, root=root)
    assert_unharmed(facts)
    assert f"({_PLACE}/homes/other (tmpfs) would be written to for real)" in facts["refused"]
    assert "\n" not in facts["refused"]


@pytest.mark.parametrize("root", [False, True], ids=["ordinary user", "root"])
def test_a_folder_whose_files_are_seen_outside_is_refused(stage, root):
    """Whatever the mounts look like: files are written inside, and looked for outside."""
    sabotage = """
dump = json.dumps
def wrong(facts):
    return dump({**facts, "keep": [os.getcwd()]} if "steps" in facts else facts)
overlay.json = type(sys)("json")
overlay.json.loads, overlay.json.dumps = json.loads, wrong
"""
    facts = stage.experiment(_MACHINE, sabotage=sabotage, root=root)
    assert_unharmed(facts)
    assert f"(what was written to {_PLACE}/homes/me/work in an overlay was written for real)" in facts["refused"]
    assert "\n" not in facts["refused"]
