"""Threads and processes beside the main one wait before they write, in a real process."""

from __future__ import annotations

import pytest

from .test_account import run_under

PROGRAM = """
    import multiprocessing, threading, time
    import torch

    def save(name):
        torch.save([1], name + ".pt")

    def write(name):
        with open(name + ".txt", "w") as file:
            file.write("1")

    def beside(kind, function, name):
        helper = kind(target=function, args=(name,))
        helper.start()
        helper.join()

    time.sleep = lambda seconds: print("held", flush=True)
    for function in (save, write):
        print(function.__name__, flush=True)
        function("main")
        beside(threading.Thread, function, "thread")
        beside(multiprocessing.get_context("fork").Process, function, "process")
"""


QUEUE = """
    import queue, threading, time

    time.sleep = lambda seconds: print("held", flush=True)
    jobs = queue.Queue()
    threading.Thread(target=lambda: print(jobs.get(), flush=True)).start()
    jobs.put("snapshot")
"""


@pytest.mark.timeout(120)
def test_who_takes_from_a_queue_is_held_up_and_who_puts_is_not(tmp_path):
    done, _ = run_under({"held": {}}, QUEUE, tmp_path)
    assert done.stdout.split() == ["held", "held", "snapshot"], "as a thread, and at the queue"


@pytest.mark.timeout(120)
def test_helpers_are_held_up_and_the_main_thread_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done, _ = run_under({"held": {}}, PROGRAM, tmp_path)
    assert done.stdout.split() == ["save", *3 * ["held"], "write", *3 * ["held"]], done.stderr
