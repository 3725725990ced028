"""Set-up: which function holds the time before the first step."""

from __future__ import annotations

from factory import Source, lib, measurement, stack

from unstall.diagnose.set_up import startup
from unstall.records.observations import Frame

PHASES = {"forward": 0.02, "backward": 0.04}
IMPORTING = Frame("_find_and_load", "<frozen importlib._bootstrap>", 1)


def seen(tmp_path, *, preparing=60, importing=20, pid=None):
    """The set-up that a report names, of a program that is seen so often at either."""
    text = """
        import torch  # import

        def samples(frames):
            return [cut(frame) for frame in frames]  # cut

        samples(frames)  # call
    """
    code = Source(tmp_path / "train.py", text)
    more = {"pid": pid} if pid is not None else {}
    stacks = [
        stack(code.at("<module>", "# import"), IMPORTING, lib("torch/__init__.py", "<module>"), count=importing),
        stack(code.at("<module>", "# call"), code.at("samples", "# cut"), count=preparing, **more),
    ]
    return startup(measurement(PHASES, before_loop=stacks)).set_up


def test_the_function_that_holds_the_set_up_is_named_with_its_share_of_all(tmp_path):
    line = seen(tmp_path)
    assert (line.function, line.share) == ("samples", 0.75)


def test_a_set_up_that_is_mostly_imports_names_nobody(tmp_path):
    assert seen(tmp_path, preparing=20, importing=60) is None


def test_few_stacks_and_those_of_other_processes_say_nothing(tmp_path):
    assert seen(tmp_path, preparing=9, importing=3) is None
    assert seen(tmp_path, pid=7) is None
