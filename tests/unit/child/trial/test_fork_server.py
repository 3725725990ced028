"""What a fork of a process that has imported a package is to the program that it becomes, in processes of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from unstall.child.trial import fork_server

SERVER = """
    import importlib.util, os, sys
    spec = importlib.util.spec_from_file_location("server", {file!r})
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    import base, heavy, heavy.part
    assert "base" in sys.modules and heavy.part.base is base
    hidden = server.Hidden(["base", "heavy"], {folder!r})
    hidden.watch_environment()
    os._exit(server.ended([sys.executable, *sys.argv[1:]]))
"""
"""What becomes of the process once it is forked and in its sandbox."""


class Forked:
    """Programs in a folder, beside packages that print a line whenever they are imported."""

    def __init__(self, folder):
        self.folder = folder
        self.write("packages/base.py", "print('base is executed')")
        self.write("packages/heavy/__init__.py", "import base\nprint('heavy is executed')\nVALUE = 3")
        self.write("packages/heavy/part.py", "import base\nprint('part is executed')")
        self.write("server.py", SERVER.format(file=fork_server.__file__, folder=str(folder)))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())
        return path

    def run(self, *words, text=None, env=()):
        """The lines that it prints, its exit code, and why it is not fit."""
        if text is not None:
            self.write(words[0], text)
        result = subprocess.run(
            [sys.executable, "server.py", *words],
            cwd=self.folder, capture_output=True, text=True, timeout=60,
            env={**os.environ, "PYTHONPATH": str(self.folder / "packages"), **dict(env)},
        )  # fmt: skip
        unfit = self.folder / fork_server.UNFIT
        lines = result.stdout.splitlines()
        executed = ["base is executed", "heavy is executed", "part is executed"]
        assert lines[:3] == executed, result.stderr
        return lines[3:], result, unfit.read_text() if unfit.exists() else None


@pytest.fixture
def forked(tmp_path):
    return Forked(Path(tmp_path).resolve())


def test_what_was_imported_before_is_there_once_it_is_imported_and_not_executed_again(forked):
    text = """
        import sys
        print([name in sys.modules for name in ("base", "heavy", "heavy.part")])
        import heavy
        print([name in sys.modules for name in ("base", "heavy", "heavy.part")], heavy.VALUE)
        from heavy import part
        import base
        print(part.base is base, heavy.__spec__.name, type(heavy.__spec__.loader).__name__)
    """
    lines, result, unfit = forked.run("program.py", text=text)
    spec = "True heavy SourceFileLoader"
    assert lines == ["[False, False, False]", "[True, True, True] 3", spec], result.stderr
    assert (result.returncode, unfit) == (0, None)


def test_a_look_for_the_package_does_not_import_it(forked):
    text = """
        import importlib.util, sys
        spec = importlib.util.find_spec("heavy")
        print(spec.name, spec.submodule_search_locations is not None, "heavy" in sys.modules)
        import heavy
        print(heavy.VALUE)
    """
    lines, result, _ = forked.run("program.py", text=text)
    assert lines == ["heavy True False", "3"], result.stderr


def test_what_is_to_be_installed_after_an_import_is_installed_when_the_program_imports_it(forked):
    forked.write(
        "packages/hooked.py",
        """
        import sys
        from unstall.child.importhook import PostImport
        targets = {name: [lambda module: print("installed in", module.__name__)] for name in ("heavy", "heavy.part")}
        hook = PostImport(targets, print)
        sys.meta_path.insert(0, hook)
        hook.install_loaded()
        """,
    )
    text = """
        import hooked
        print("first line")
        import heavy
        print("last line")
    """
    lines, result, _ = forked.run("program.py", text=text)
    installed = ["installed in heavy.part", "installed in heavy"]
    assert lines == ["first line", *installed, "last line"], result.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "import os; os.environ['OMP_NUM_THREADS'] = '1'; import heavy",
            "OMP_NUM_THREADS is set before base and heavy",
        ),
        ("import os; os.environ.pop('HOME'); import heavy", "HOME is set before"),
        ("import os; os.putenv('KMP_AFFINITY', 'none'); import heavy", "KMP_AFFINITY is set before"),
        ("import base, os; os.environ['X'] = '1'; import heavy", "X is set before heavy is imported"),
        ("import sys; sys.path.insert(0, 'other'); import heavy", "heavy is found in another place"),
    ],
)
def test_a_program_that_could_have_got_another_one_is_not_forked(forked, text, reason):
    forked.write("other/heavy/__init__.py", "VALUE = 4")
    forked.write("program.py", text + "\nprint('it goes on')")
    lines, result, unfit = forked.run("program.py")
    assert unfit is not None and unfit.startswith(reason), result.stderr
    assert lines == []


def test_cores_that_are_chosen_before_make_it_unfit(forked):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core")
    text = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); import heavy"
    _, _, unfit = forked.run("program.py", text=text)
    assert unfit == "its cores are chosen before heavy is imported"


def test_the_environment_may_change_once_all_is_imported(forked):
    text = """
        import os, subprocess, sys, heavy
        os.environ["X"] = "1"
        print(subprocess.run([sys.executable, "-c", "import os; print(os.environ['X'])"], capture_output=True).stdout)
    """
    lines, result, unfit = forked.run("program.py", text=text)
    assert (lines, unfit) == (["b'1\\n'"], None), result.stderr


ITSELF = """
    import inspect, os, pickle, sys
    class Own: pass
    print(__name__, sys.modules["__main__"].__dict__ is globals(), pickle.loads(pickle.dumps(Own())).__class__ is Own)
    print(sys.argv, sys.orig_argv[1:], __file__ == os.path.abspath("{file}"), __spec__ is None, __package__)
    print(sys.path[0] == os.path.abspath("{first}"), inspect.getsource(Own).strip(), Own.__init__.__name__)
    def f(x: Own): pass
    print(f.__annotations__["x"] is Own)
"""


@pytest.mark.parametrize("module", [False, True])
def test_a_program_is_told_of_itself_what_python_tells_it(forked, module):
    file, first = ("tool/start.py", ".") if module else ("inside/program.py", "inside")
    forked.write(file, ITSELF.format(file=file, first=first))
    words = ["-m", "tool.start"] if module else [file]
    lines, result, _ = forked.run(*words, "--epochs", "3")
    plain = subprocess.run(
        [sys.executable, *words, "--epochs", "3"], cwd=forked.folder, capture_output=True, text=True, timeout=60
    )
    assert lines == plain.stdout.splitlines(), result.stderr + plain.stderr
    assert len(lines) == 4


def test_how_it_ends_is_how_python_ends(forked):
    text = """
        import atexit, sys, threading, time
        atexit.register(print, "at the end")
        threading.Thread(target=lambda: (time.sleep(0.3), print("a thread's end"))).start()
        if sys.argv[1] == "error":
            [][1]
        sys.exit({"none": None, "text": "it says why", "true": True}.get(sys.argv[1]) or int(sys.argv[1]))
    """
    forked.write("program.py", text)
    for word in ("none", "text", "true", "7", "-1", "300", "error"):
        lines, result, _ = forked.run("program.py", word)
        plain = subprocess.run(
            [sys.executable, "program.py", word], cwd=forked.folder, capture_output=True, text=True, timeout=60
        )
        assert (lines, result.returncode) == (plain.stdout.splitlines(), plain.returncode), word
        assert lines == ["a thread's end", "at the end"]
        assert result.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:], word
