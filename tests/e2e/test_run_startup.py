"""How Python starts in a program is as without unstall: its own customizing modules, its names, its streams."""

import shlex
import subprocess
import sys
import sysconfig

import pytest

# Not that of the virtual environment, which has no user site.
PYTHON = f"{sys.base_prefix}/bin/python3"
# As the console script begins; `python -m unstall` is Python's own way to say a file of the working directory's.
COMMAND = [sys.executable, "-c", "from _unstall import main; main()", "run"]
# Every Python imports these at its start: the program's is meant, not that of unstall itself.
IN_THE_PROGRAM = "import sys\nif 'run' not in sys.orig_argv:\n    "
SAYS = IN_THE_PROGRAM + "sys.stdout.write('{} with path ' + repr(sys.path) + '\\n')\n"
LOOK = """
    import sys

    print(sys.path, sys.flags, [name for name in ("sitecustomize", "usercustomize", "unstall") if name in sys.modules])
    print([path for path in sys.path_importer_cache if "bootstrap" in path])
    for name in ("sitecustomize", "usercustomize", "unstall"):
        try:
            module = __import__(name)
            print(module.__file__, module.__spec__.origin, type(module.__loader__), module is sys.modules[name], sorted(vars(module)))
        except Exception as error:
            print(type(error), error)
"""


def site_folder(workspace):
    """Where Python looks for the user's packages when this is PYTHONUSERBASE."""
    return sysconfig.get_path("purelib", "posix_user", {"userbase": str(workspace.folder / "base")}).removeprefix(
        str(workspace.folder) + "/"
    )


def both(workspace, *words, options=("--no-sampling",), **kwargs):
    """What a Python does with unstall and without; the same bytes on both streams, the report apart."""
    plain = workspace.start([PYTHON, *words], **kwargs).result()
    watched = workspace.watched("--", PYTHON, *words, options=options, unstall=COMMAND, **kwargs)
    assert (watched.out, watched.status) == (plain.out, plain.status)
    if "Fatal Python error" not in plain.err:  # whose traceback has unstall's two frames in it
        assert watched.err.startswith(plain.err)
    return plain, watched


@pytest.mark.parametrize(
    "content",
    [
        SAYS.format("customized"),
        IN_THE_PROGRAM + "raise ValueError('broken')",
        IN_THE_PROGRAM + "import nowhere",
        IN_THE_PROGRAM + "raise ImportError('odd', name='sitecustomize')",
        IN_THE_PROGRAM + "sys.exit(5)",
        None,
    ],
    ids=["works", "raises", "lacks a module", "claims to be missing", "exits", "is not there"],
)
def test_a_sitecustomize_of_the_users_own(workspace, content):
    site = site_folder(workspace)
    (workspace.folder / "path").mkdir()
    if content is not None:
        workspace.write("path/sitecustomize.py", content)
    workspace.write(f"{site}/usercustomize.py", SAYS.format("the user"))
    workspace.write(f"{site}/first.pth", "import sys; 'run' in sys.orig_argv or sys.stdout.write('pth\\n')\n")
    workspace.write("program.py", LOOK)
    environment = {"PYTHONPATH": str(workspace.folder / "path"), "PYTHONUSERBASE": str(workspace.folder / "base")}
    plain, _ = both(workspace, "program.py", env=environment)
    assert plain.out.startswith("pth\n")
    assert ("the user with" in plain.out) == (plain.status == 0)


def test_modules_beside_the_script_that_python_does_not_import_at_start(workspace):
    for name in ("sitecustomize", "usercustomize", "unstall"):
        workspace.write(f"{name}.py", "mine = 1\nprint('imported', __name__)\n")
    workspace.write("program.py", LOOK)
    plain, _ = both(workspace, "program.py", env={"PYTHONPATH": ""})
    assert plain.out.count("imported") == 3


def test_a_program_finds_no_unstall_that_it_would_not_find(workspace):
    workspace.write("program.py", LOOK)
    plain, _ = both(workspace, "program.py")
    assert "No module named 'unstall'" in plain.out


def test_a_module_of_the_users_that_is_called_unstall(workspace):
    """In the working directory, where Python looks first: it is the program's, and nobody else imports it."""
    workspace.write(
        "unstall.py",
        """
        import sys

        print("imported by", sys.argv[0].rpartition("/")[2])
        steps = "of its own"
        """,
    )
    workspace.write(
        "program.py",
        """
        from tiny import training

        import unstall

        for step, loss in training(60):
            print(step, loss.hex())
        print(unstall.steps, unstall.__file__)
        """,
    )
    plain = workspace.plain("program.py", env={"PYTHONPATH": "."})
    watched = workspace.watched("program.py", env={"PYTHONPATH": "."}, unstall=COMMAND)
    assert plain.out.endswith(f"of its own {workspace.folder / 'unstall.py'}\n")
    assert (watched.out, watched.status) == (plain.out, 0)
    assert watched.steps >= 1


@pytest.mark.parametrize("path", ["", ".", "elsewhere"])
def test_modules_of_the_users_that_are_called_as_unstalls_libraries(workspace, path):
    for name in ("click", "rich", "msgspec", "psutil", "tomllib", "queue"):
        workspace.write(f"{path or '.'}/{name}.py", f"print('imported {name}')\n")
    workspace.write("program.py", "print('ran')\n")
    plain = workspace.plain("program.py", env={"PYTHONPATH": path})
    watched = workspace.watched("program.py", env={"PYTHONPATH": path}, options=["--no-sampling"])
    assert (watched.status, watched.out) == (plain.status, plain.out) == (0, "ran\n")


def test_the_memory_probe_imports_no_module_of_the_users(workspace):
    workspace.write("statistics.py", "print('imported statistics')\n")
    workspace.write(
        "program.py",
        """
        from tiny import training

        kept = []
        for step, loss in training(300):
            kept.append(bytearray(1 << 20))
            print(step, loss.hex())
        """,
    )
    _, watched = workspace.both("program.py")
    assert watched.steps >= 1


@pytest.mark.parametrize("option", ["-S", "-I", "-E", "-IS", "-s", "-P"])
def test_options_of_the_interpreter(workspace, option):
    if option == "-P" and sys.version_info < (3, 11):
        pytest.skip("there is no such option yet")
    workspace.write("program.py", LOOK)
    _, watched = both(workspace, option, "program.py")
    kept_out = {"-S": "-S", "-I": "-I", "-E": "-E", "-IS": "-S"}.get(option)
    assert (f"python {kept_out}" in watched.notes) == (kept_out is not None)


def test_a_program_that_starts_python_with_such_options(workspace):
    """Not -S: docs/how-it-works.md says what it finds on its path."""
    workspace.write(
        "program.py",
        """
        import subprocess
        import sys

        for option in ("-I", "-E", "-s"):
            code = "import sys; print(sys.path, sys.flags, 'sitecustomize' in sys.modules)"
            subprocess.run([sys.executable, option, "-c", code])
        """,
    )
    both(workspace, "program.py", env={"PYTHONPATH": str(workspace.folder)})


STREAMS = """
    import os
    import sys

    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        try:
            os.fstat(number)
            found = "open"
        except OSError:
            found = "closed"
        with open("seen.txt", "a") as file:
            file.write(f"{number} {found} {stream is None}\\n")
    print("to stdout")
    print("to stderr", file=sys.stderr)
    sys.exit(3)
"""


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full"])
def test_streams_that_are_closed(workspace, closed):
    workspace.write("program.py", STREAMS)
    wrapper = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    plain = workspace.start([*wrapper, sys.executable, "program.py"]).result()
    seen = (workspace.folder / "seen.txt").read_text()
    (workspace.folder / "seen.txt").unlink()
    watched = workspace.watched("program.py", wrapper=wrapper, options=["--no-sampling"])
    assert (workspace.folder / "seen.txt").read_text() == seen
    assert (watched.out, watched.status) == (plain.out, plain.status)
    assert watched.report["run"]["exit_code"] == plain.status


@pytest.mark.parametrize("problem", ["nowhere.py", "--frobnicate"])
def test_a_message_with_stderr_closed_goes_nowhere(workspace, problem):
    result = workspace.watched(problem, wrapper=["sh", "-c", 'exec "$@" 2>&-', "sh"])
    assert (result.status, result.out) == (2, "")


def test_the_report_does_not_go_to_a_program_that_reads_both_streams(workspace):
    workspace.write("program.py", "print('only this')\n")
    done = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m unstall run --no-sampling program.py 2>&- | cat"],
        cwd=workspace.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "only this\n"
