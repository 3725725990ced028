"""Whatever a program does in the sandbox, the files are afterwards what they were: every byte, mode, time and name."""

import contextlib
import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import unstall

_SOURCE = Path(unstall.__file__).parents[1]
_NOBODY = 65534

# Runs commands in a sandbox and prints what became of them, as JSON.
_DRIVER = """
import json, os, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from unstall.sandbox import open_sandbox, overlay
asked = json.loads(sys.argv[2])
if asked["means"] == "guard":
    overlay.prepare = lambda *arguments: None
with open_sandbox(Path.cwd(), [Path(asked["keep"])], required=asked["means"] != "guard", **asked["options"]) as sandbox:
    statuses = []
    for words in asked["commands"]:
        command = sandbox.command(words)
        statuses.append(subprocess.run(command, env=sandbox.environment(dict(os.environ))).returncode)
    facts = {"force": sandbox.force, "note": sandbox.note, "statuses": statuses, "refused": sandbox.refused()}
    (Path(asked["keep"]) / "facts.json").write_text(json.dumps(facts))
"""

_HARMS = """
import os, shutil, sqlite3, subprocess, sys
assert open("model.pt").read() == "the best weights", "not as it was at the beginning"
open("model.pt", "w").write("worse weights")
with open("train.log", "a") as log:
    log.write("another line\\n")
shutil.rmtree("out")
os.makedirs("out/new")
os.rename("notes.txt", "out/notes.txt")
os.truncate("data.bin", 3)
os.chmod("mode.sh", 0o700)
os.utime("times", (0, 0))
os.replace("model.pt", "link-target")
os.symlink("data.bin", "new-link")
os.unlink("old-link")
os.link("times", "hard-link")
open("through-link", "w").write("through")
with sqlite3.connect("runs.db") as database:
    database.execute("insert into runs values (2)")
database.close()
with os.fdopen(os.open("low-level", os.O_WRONLY | os.O_CREAT), "wb") as file:
    file.write(b"x" * 100)
for name in os.listdir("deep"):
    os.rename("deep/" + name, "deep/renamed-" + name)
os.rename("deep", "deeper")
print("harmed")
"""

_UNSEEN_HARMS = """
import mmap, subprocess, sys
import numpy
numpy.full(1000, 7).tofile("data.bin")
with open("mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
    mapped[:4] = b"XXXX"
subprocess.run("echo more >> train.log; rm -r out; mkdir made; cp model.pt made", shell=True, check=True)
subprocess.run([sys.executable, "-c", "open('by-a-grandchild', 'w').write('here')"], check=True)
"""


@pytest.fixture(params=["overlay", "ordinary user", "guard"])
def bench(request, tmp_path):
    """A sandbox of each kind around a folder of files."""
    made = _Bench(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture
def overlay_bench(tmp_path):
    made = _Bench("overlay", tmp_path)
    yield made
    made.close()


class _Bench:
    """A folder with a user's files in it, and programs run there in a sandbox."""

    def __init__(self, means, tmp_path):
        self.known = homes()
        self.means = means
        self.ordinary = means == "ordinary user"
        self.python = sys.executable
        self.wrapper = []
        self.base = tmp_path
        if self.ordinary:
            self._become_ordinary()
        self.folder, self.keep = self.base / "work", self.base / "kept"
        for folder in (self.folder, self.keep):
            folder.mkdir()
        _furnish(self.folder)
        if self.ordinary:
            for path in [self.base, *self.base.rglob("*")]:
                os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
        if means != "guard" and not self._has_overlay():
            self.close()
            pytest.skip("an overlay is not possible here: user namespaces are not allowed")
        self.before = snapshot(self.folder)

    def _become_ordinary(self):
        """An ordinary user's process, an interpreter that he can run, and a folder of his; where tests run as root."""
        python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
        if os.geteuid() != 0 or not shutil.which("setpriv") or python is None:
            pytest.skip("only root can become another user")
        self.base = Path(tempfile.mkdtemp())
        self.base.chmod(0o755)
        self.python = python
        self.wrapper = ["setpriv", "--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"]
        looks = "import sys; sys.path.insert(0, sys.argv[1]); import unstall; assert sys.version_info >= (3, 10)"
        if subprocess.run([*self.wrapper, python, "-c", looks, _SOURCE], capture_output=True).returncode != 0:
            self.close()
            pytest.skip("no interpreter here that another user can run")

    def _has_overlay(self):
        with contextlib.suppress(FileNotFoundError):
            return self.run([["true"]], check=False)["force"] == "overlay"
        return False

    def start(self, commands, means=None, **options):
        asked = {"means": means or self.means, "keep": str(self.keep), "commands": commands, "options": options}
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        if self.ordinary:
            env["HOME"] = str(self.base)
        words = [*self.wrapper, self.python, "-c", _DRIVER, str(_SOURCE), json.dumps(asked)]
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, commands, check=True, **options):
        """Run commands one after the other in one sandbox: the driver's facts, and ``output``."""
        running = self.start(commands, **options)
        output, _ = running.communicate(timeout=100)
        facts = self.keep / "facts.json"
        if check:
            assert running.returncode == 0, output
        return {**json.loads(facts.read_text()), "output": output}

    def python_command(self, source, *words):
        return [self.python, "-c", source, *words]

    def assert_unharmed(self):
        after = snapshot(self.folder)
        assert {
            path: (self.before.get(path), after.get(path))
            for path in self.before | after
            if self.before.get(path) != after.get(path)
        } == {}
        assert leftovers(self.known) == []

    def close(self):
        if self.ordinary:
            shutil.rmtree(self.base, ignore_errors=True)


def _furnish(folder):
    """A tree of files, links and folders, with times of long ago."""
    (folder / "out" / "events").mkdir(parents=True)
    (folder / "out" / "events" / "tfevents").write_bytes(b"\0" * 200)
    (folder / "deep" / "one" / "two").mkdir(parents=True)
    (folder / "deep" / "one" / "two" / "leaf").write_text("leaf")
    (folder / "model.pt").write_text("the best weights")
    (folder / "train.log").write_text("a line\n")
    (folder / "notes.txt").write_text("notes")
    (folder / "data.bin").write_bytes(bytes(range(256)) * 64)
    (folder / "mapped").write_bytes(b"0123456789" * 500)
    (folder / "mode.sh").write_text("#!/bin/sh\n")
    (folder / "mode.sh").chmod(0o755)
    (folder / "times").write_text("times")
    (folder / "link-target").write_text("target")
    (folder / "old-link").symlink_to("link-target")
    (folder / "through-link").symlink_to("low-level")
    (folder / "low-level").write_text("low")
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]);"
            " d.execute('create table runs (n)'); d.execute('insert into runs values (1)'); d.commit(); d.close()",
            folder / "runs.db",
        ],
        check=True,
    )
    for number, path in enumerate(sorted(folder.rglob("*"), reverse=True)):
        os.utime(path, (1_500_000_000 + number, 1_600_000_000.123 + number), follow_symlinks=False)
    os.utime(folder, (1_500_000_000, 1_600_000_000))


def snapshot(folder):
    """Of every path: its kind and mode, time of change, owner, and its content."""
    return {str(path.relative_to(folder)): _facts(path) for path in [folder, *sorted(folder.rglob("*"))]}


def _facts(path):
    facts = path.lstat()
    content = ""
    if stat.S_ISLNK(facts.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(facts.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return facts.st_mode, facts.st_mtime_ns, facts.st_uid, content


def homes():
    """Folders of sandboxes, of whomever."""
    roots = {"/tmp", "/var/tmp", tempfile.gettempdir()}
    return {str(path) for root in roots for path in Path(root).glob("unstall-sandbox-*")}


def leftovers(known):
    """What sandboxes have left since ``known``: waits for a moment, as a keeper works on its own."""
    deadline = time.monotonic() + 10
    while True:
        # Those of other tests at the same time have a keeper at work.
        found = [home for home in homes() - known if not _runs(home)]
        mounts = Path("/proc/self/mountinfo")
        if mounts.exists() and "unstall-sandbox-" in mounts.read_text():
            found.append("a mount")
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def _runs(word):
    """Whether a process runs with this word in its command line."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(word) in (process / "cmdline").read_bytes().split(b"\0"):
                return True
    return False


def test_python_writes_leave_no_trace(bench):
    harm = bench.python_command(_HARMS)
    facts = bench.run([harm, harm])
    assert facts["statuses"] == [0, 0], facts["output"]
    assert facts["output"].count("harmed") == 2
    assert facts["force"] == ("guard" if bench.means == "guard" else "overlay")
    bench.assert_unharmed()


def test_writes_of_c_code_and_other_programs_leave_no_trace(overlay_bench):
    facts = overlay_bench.run([overlay_bench.python_command(_UNSEEN_HARMS)])
    assert facts["statuses"] == [0], facts["output"]
    overlay_bench.assert_unharmed()


def test_torch_tensorboard_and_loader_workers(overlay_bench):
    source = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter("out/events")
    for number, (batch,) in enumerate(DataLoader(TensorDataset(torch.randn(64, 1000)), batch_size=8, num_workers=2)):
        writer.add_scalar("mean", batch.mean(), number)
    writer.close()
    torch.save(batch, "model.pt")
    print("batches:", number + 1)
    """
    import textwrap

    before = sorted(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else []
    facts = overlay_bench.run([overlay_bench.python_command(textwrap.dedent(source))])
    assert "batches: 8" in facts["output"]
    overlay_bench.assert_unharmed()
    assert not [name for name in (set(os.listdir("/dev/shm")) - set(before)) if name.startswith("torch_")]


def test_the_process_is_the_programs_own(bench):
    source = (
        "import os, signal, sys; print(sys.argv[1:], os.getcwd(), os.getppid(), sys.stdin.read(),"
        " signal.getsignal(signal.SIGTERM) == signal.SIG_DFL); sys.exit(7)"
    )
    facts = bench.run([bench.python_command(source, "an argument", ""), ["/bin/sh", "-c", "kill -9 $$"]])
    assert facts["statuses"] == [7, -9]
    assert f"['an argument', ''] {bench.folder}" in facts["output"]
    bench.assert_unharmed()


def test_kept_folders_are_written_for_real(bench):
    bench.run([bench.python_command(f"open({str(bench.keep / 'recording')!r}, 'w').write('kept')")])
    assert (bench.keep / "recording").read_text() == "kept"
    bench.assert_unharmed()


_SLOW_HARM = _HARMS + "\nimport sys, time\nsys.stdout.flush()\ntime.sleep(60)\n"


@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_killed_in_the_middle(bench, how):
    """Ctrl-C goes to the whole group, SIGKILL to unstall alone; the program and its children end, files are put back."""
    seconds = f"61.{time.monotonic_ns()}"  # no other test's, which may run at the same time
    source = (
        f"import subprocess; subprocess.Popen(['sleep', '{seconds}'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        + _SLOW_HARM
    )
    running = bench.start([bench.python_command(source)])
    while "harmed" not in (line := running.stdout.readline()):
        assert line and running.poll() is None
    if how == "kill":
        running.kill()
    else:
        os.killpg(running.pid, signal.SIGINT)
    running.wait(30)
    _wait_until_unharmed(bench)
    bench.assert_unharmed()
    if bench.means != "guard":
        deadline = time.monotonic() + 10
        while _runs(seconds) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not _runs(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)


def _wait_until_unharmed(bench):
    """The keeper puts back on its own when nobody is there to wait for it."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):  # it puts back what is looked at
            if snapshot(bench.folder) == bench.before and not leftovers(bench.known):
                return
        time.sleep(0.05)


def test_nothing_is_sent_twice(bench):
    """A local server sees GET, and no POST; the program sees a network that fails."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            seen.append(self.command)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_PUT = answer

        def log_message(self, *arguments):
            pass

    source = """
import socket, sys, urllib.error, urllib.request
url = sys.argv[1]
print("get", urllib.request.urlopen(url).status)
try:
    urllib.request.urlopen(url + "?token=secret", data=b"x")
except urllib.error.URLError as error:
    print("post", type(error.reason).__name__)
try:
    socket.create_connection(("192.0.2.1", 5432), timeout=2)
except OSError as error:
    print("database", type(error).__name__)
import smtplib
try:
    smtplib.SMTP("localhost", 25)
except OSError as error:
    print("mail", type(error).__name__)
"""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/metrics"
    try:
        facts = bench.run([bench.python_command(source, url)])
        refused = "ConnectionRefusedError"
        for line in ("get 200", f"post {refused}", f"database {refused}", f"mail {refused}"):
            assert line in facts["output"], facts["output"]
        assert seen == ["GET"]
        assert facts["refused"] == [f"POST {url}", "a connection to 192.0.2.1:5432", "mail through localhost:25"]
        allowed = bench.python_command(
            "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], data=b'x')", url
        )
        assert bench.run([allowed], network_writes=True)["refused"] == []
        assert seen == ["GET", "POST"]
    finally:
        server.shutdown()
        server.server_close()


def test_unix_sockets_are_reached(overlay_bench):
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = f"{folder}/service"
        server.bind(path)
        server.listen()
        source = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('reached')"
        assert "reached" in overlay_bench.run([overlay_bench.python_command(source, path)])["output"]


def test_stacks_are_sampled_from_outside(overlay_bench):
    """The sampler looks into a process of another namespace."""
    ready = overlay_bench.keep / "ready"
    source = f"import os, time\ndef busy():\n    open({str(ready)!r}, 'w').write(str(os.getpid()))\n    time.sleep(30)\nbusy()"
    running = overlay_bench.start([overlay_bench.python_command(source)])
    deadline = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)
    dump = subprocess.run(
        [Path(sys.executable).with_name("py-spy"), "dump", "--nonblocking", "--pid", ready.read_text()],
        capture_output=True,
        text=True,
    )
    running.terminate()
    running.wait(30)
    running.stdout.close()
    assert "busy" in dump.stdout, dump.stderr


def test_guard_is_refused_where_safety_is_required(tmp_path):
    known = homes()
    source = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from unstall.sandbox import SandboxError, open_sandbox, overlay\n"
        "overlay.prepare = lambda *arguments: None\n"
        "try:\n    open_sandbox(Path.cwd(), []).__enter__()\n"
        "except SandboxError as error:\n    print('refused:', error)"
    )
    done = subprocess.run([sys.executable, "-c", source, _SOURCE], cwd=tmp_path, capture_output=True, text=True)
    assert "refused: nothing here can keep" in done.stdout and "--no-sandbox" in done.stdout
    assert leftovers(known) == []
