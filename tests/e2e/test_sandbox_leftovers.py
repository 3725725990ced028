"""What an experiment makes outside of the file system is gone with it; what a killed command leaves, at the next start."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_driver import SandboxDriver, wait_until

_LIBC = ctypes.CDLL(None, use_errno=True)

_SHARED = """
import ctypes, os, sys
key, name = int(sys.argv[1]), sys.argv[2].encode()
libc = ctypes.CDLL(None, use_errno=True)
assert libc.shmget(key, 4096, 0o1600) >= 0, os.strerror(ctypes.get_errno())
assert libc.semget(key, 1, 0o1600) >= 0, os.strerror(ctypes.get_errno())
try:
    queues = ctypes.CDLL("librt.so.1", use_errno=True)
    queue = queues.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
except OSError:
    queue = 0
assert queue >= 0, os.strerror(ctypes.get_errno())
print("made")
"""


@pytest.fixture(params=["root", "ordinary user"])
def driver(request):
    made = SandboxDriver(request.param == "ordinary user")
    yield made
    made.close()


def test_shared_memory_and_queues_are_gone_with_the_experiment(driver):
    key, name = int.from_bytes(os.urandom(3), "big") + 1, f"/unstall-test-{os.getpid()}"
    facts = driver.run([driver.python, "-c", _SHARED, str(key), name])
    assert facts["status"] == 0 and "made" in facts["output"], facts["output"]
    for kind in ("shm", "sem"):
        keys = [line.split()[0] for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]]
        assert str(key) not in keys
    assert _LIBC.mq_open(name.encode(), os.O_RDWR) == -1


# Root changes all of it, in a layer; an ordinary user nothing. Both use the devices.
_DEVICE_FILES = """
import os, stat, sys
name, queue = sys.argv[1:]
def overwrite():
    open(f"/dev/{name}", "w").write("overwritten")
def make_file():
    open(f"/dev/{name}-new", "w").write("new")
def make_folder():
    os.makedirs(f"/dev/{name}-folder/within")
def make_device():
    os.mknod(f"/dev/{name}-zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    assert open(f"/dev/{name}-zero", "rb").read(4) == bytes(4)
def change_mode():
    os.chmod("/dev/full", 0o600)
def remove():
    os.unlink(f"/dev/{name}-doomed")
def share():
    open(f"/dev/shm/{name}", "w").write("shared")
def queue_by_file():
    open(f"/dev/mqueue{queue}", "w").close()
for attack in (overwrite, make_file, make_folder, make_device, change_mode, remove, share, queue_by_file):
    try:
        attack()
        print("done:", attack.__name__)
    except OSError as error:
        print("failed:", attack.__name__, error)
assert len(open("/dev/urandom", "rb").read(9)) == 9
open("/dev/null", "w").write("gone")
os.openpty()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay files in /dev")
def test_nothing_is_left_among_the_devices(driver):
    name = f"unstall-test-{os.getpid()}"
    files = [Path("/dev", name), Path("/dev", f"{name}-doomed")]
    mode = Path("/dev/full").stat().st_mode
    try:
        for file in files:
            file.write_text("years of work")
            file.chmod(0o666)
        before = sorted(Path("/dev").iterdir())
        facts = driver.run([driver.python, "-c", _DEVICE_FILES, name, f"/{name}"])
        assert sorted(Path("/dev").iterdir()) == before
        assert [file.read_text() for file in files] == ["years of work"] * 2
        assert Path("/dev/full").stat().st_mode == mode
        assert not Path("/dev/shm", name).exists() and not Path("/dev/mqueue", name).exists()
        assert facts["status"] == 0, facts["output"]
        assert "done: share" in facts["output"]
        assert driver.ordinary or facts["output"].count("done: ") >= 7, facts["output"]
    finally:
        Path("/dev/full").chmod(mode)
        for path in Path("/dev").glob(f"{name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("second", ["nope", "main"])
def test_a_gate_that_was_killed_is_cleaned_up_at_the_next_start(workspace, second):
    workspace.write("train.py", "import time, unstall\nfor _ in unstall.steps(range(9999)):\n    time.sleep(0.01)\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], cwd=workspace.folder, check=True)
    gate = [sys.executable, "-m", "unstall", "gate", "--no-sandbox", "--steps", "5", "--baseline"]
    runs = workspace.beside / "gates" / "runs"
    env = {"UNSTALL_STATE": str(runs.parent)}
    killed = workspace.start([*gate, "main", "train.py"], env=env)
    assert wait_until(lambda: list(runs.glob("*/recordings/*/rec-*.bin")), 60)
    killed.signal(signal.SIGKILL)
    killed.process.wait(10)
    killed.end()  # its programs
    (left,) = runs.glob("*/tree")
    again = workspace.start([*gate, second, "train.py"], env=env)
    if second == "main":
        assert wait_until(lambda: not left.exists() and list(runs.glob("*/recordings/*/rec-*.bin")), 60)
        again.signal(signal.SIGINT)
    again.result()
    listed = subprocess.run(["git", "worktree", "list"], cwd=workspace.folder, capture_output=True, text=True).stdout
    assert len(listed.splitlines()) == 1, listed
    assert not left.exists() and not list(runs.glob("*/tree"))


def test_optimize_that_was_killed_is_cleaned_up_at_the_next_start(workspace, tmp_path_factory):
    temporary = tmp_path_factory.mktemp("temporary")
    env = {**os.environ, "TMPDIR": str(temporary)}
    workspace.write("train.py", "import time\ntime.sleep(60)\n")
    workspace.write("short.py", "print(1)\n")
    optimize = [sys.executable, "-m", "unstall", "optimize", "--no-sandbox"]
    words = {"cwd": workspace.folder, "env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    killed = subprocess.Popen([*optimize, "train.py"], **words)
    assert wait_until(lambda: list(temporary.glob("unstall-optimize-*/trial-001")), 60)
    (left,) = temporary.glob("unstall-optimize-*")
    running = subprocess.Popen([*optimize, "train.py"], **words)  # another one, at the same time
    assert wait_until(lambda: len(list(temporary.glob("unstall-optimize-*/trial-001"))) == 2, 60)
    assert left.is_dir()
    killed.kill()
    killed.wait(30)
    subprocess.run([*optimize, "short.py"], cwd=workspace.folder, env=env, capture_output=True, timeout=100)
    assert not left.exists()
    assert len(list(temporary.glob("unstall-optimize-*"))) == 1  # that of the one that runs
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert list(temporary.glob("unstall-*")) == []
