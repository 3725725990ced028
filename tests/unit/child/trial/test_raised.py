"""A function of the program that fails on purpose, in a real process."""

from __future__ import annotations

import pytest

from .test_account import run_under

PROGRAM = """
    import threading
    from concurrent.futures import ThreadPoolExecutor

    def read(number):
        return number

    def attempt(number):
        try:
            return read(number)
        except OSError as error:
            return error.strerror

    print([attempt(number) for number in range(3)])
    print([attempt(number) for number in range(3)])
"""
THREADS = """
    import threading

    def read(number):
        print("read", number, flush=True)

    for number in range(3):
        thread = threading.Thread(target=read, args=(number,))
        thread.start()
        thread.join()
"""


@pytest.mark.timeout(60)
def test_the_call_that_was_asked_for_fails_and_no_other(tmp_path):
    path = str(tmp_path / "program.py")
    done, _ = run_under({"raised": {"path": path, "name": "read", "call": 2}}, PROGRAM, tmp_path)
    failed = "a fault that was put in here, to see how the program ends"
    assert done.stdout.splitlines() == [str([0, failed, 2]), "[0, 1, 2]"], done.stderr


@pytest.mark.timeout(60)
def test_in_whatever_thread(tmp_path):
    path = str(tmp_path / "program.py")
    done, _ = run_under({"raised": {"path": path, "name": "read", "call": 2}}, THREADS, tmp_path)
    assert done.stdout.splitlines() == ["read 0", "read 2"] and "RaisedFault" in done.stderr
