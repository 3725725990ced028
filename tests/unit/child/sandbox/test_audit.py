"""Audit events that are asked for: each test in a process of its own, as a hook is there for good."""

import subprocess
import sys
import textwrap

import pytest

EARS = {
    "C": "from unstall.child import _recorder",
    "Python": "import sys; sys.modules['unstall.child._recorder'] = None",
}


@pytest.fixture(params=EARS)
def program(request):
    """Runs a program that hears by either means."""
    if request.param == "C":
        pytest.importorskip("unstall.child._recorder")

    def run(text):
        lines = [EARS[request.param], "from unstall.child.sandbox import audit", textwrap.dedent(text)]
        return subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=60)

    return run


def test_what_is_asked_for_is_heard_and_nothing_else(program):
    done = program("""
        import os, sys
        audit.listen({"os.mkdir": lambda path, mode, folder: print("mkdir", path), "mine": lambda *given: print(given)})
        sys.audit("mine", 1, "two")
        sys.audit("mine")
        sys.audit("mine.not")
        sys.audit("min")
        id(open(os.devnull))
        try:
            os.mkdir("/dev/null/nowhere")
        except OSError:
            print("refused by the system")
    """)
    assert done.stdout.splitlines() == ["(1, 'two')", "()", "mkdir /dev/null/nowhere", "refused by the system"]
    assert (done.returncode, done.stderr) == (0, "")


def test_what_it_raises_is_raised_where_the_event_is(program):
    done = program("""
        def refuse(*arguments):
            raise PermissionError("no")

        audit.listen({"open": refuse})
        try:
            open("/dev/null")
        except PermissionError as error:
            print(error)
    """)
    assert (done.stdout, done.returncode) == ("no\n", 0)


def test_several_hear_and_so_do_threads_and_forks(program):
    done = program("""
        import os, sys, threading
        audit.listen({"mine": lambda: print("first", flush=True)})
        audit.listen({"mine": lambda: print("second", flush=True)})
        thread = threading.Thread(target=sys.audit, args=("mine",))
        thread.start()
        thread.join()
        if not os.fork():
            sys.audit("mine")
            os._exit(0)
        os.wait()
    """)
    assert done.stdout.split() == ["first", "second"] * 2


def test_it_hears_to_the_end_of_the_interpreter(program):
    done = program("""
        import os, sys

        class Last:
            def __del__(self, say=sys.audit):
                say("mine")

        audit.listen({"mine": lambda write=os.write: write(1, b"heard")})
        sys.last = Last()
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("heard", "", 0)


def test_a_tracer_of_the_programs_does_not_see_it(program):
    done = program("""
        import sys

        def mine():
            return 1

        audit.listen({"mine": mine})
        seen = []
        sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
        sys.audit("mine")
        sys.setprofile(None)
        print(seen)
    """)
    assert done.stdout == "[]\n"


def test_what_a_look_does_is_not_heard(program):
    done = program("""
        import os, sys

        def look():
            print("heard")
            sys.audit("mine")

        audit.listen({"mine": look})
        sys.audit("mine")
        sys.audit("mine")
    """)
    assert done.stdout.split() == ["heard"] * 2
