"""The census of what a loop holds disturbs nothing: no code of the program runs, nothing is kept alive, any data is bounded.

PYTEST_DONT_REWRITE: a rewritten assertion reads its function's locals, and such a function is left alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.child import retention

SOURCE = Path(retention.__file__)
pytestmark = pytest.mark.usefixtures("alone")


def look(frame):
    """A busy machine must not cut the census short."""
    return retention.probe(frame, time_limit_s=10.0)


def probe():
    return look(sys._getframe(1))


TRAPS = """
import json
import sys

from unstall.child import retention


class Trap(list):
    def __len__(self):
        raise AssertionError

    __iter__ = __getitem__ = __sizeof__ = __bool__ = __eq__ = __hash__ = __repr__ = __len__


class Object:
    def __init__(self):
        self.items = Trap([1, 2])

    def __getattr__(self, name):
        raise AssertionError(name)

    @property
    def value(self):
        raise AssertionError


def main():
    objects = {"trap": Trap([1]), "object": Object()}
    return retention.probe(sys._getframe(), time_limit_s=10.0)


print(json.dumps(main()))
"""


def test_no_code_of_the_programs_classes_is_called(tmp_path):
    """In a process of its own: the modules of all other tests are more than a census goes through."""
    program = tmp_path / "traps.py"
    program.write_text(TRAPS)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["complete"]
    assert result["entries"]["objects['trap']"]["kind"] == "list"
    assert result["entries"]["objects['object'].items"]["kind"] == "list"


def test_nothing_is_kept_alive():
    class Thing:
        pass

    def loop():
        thing = Thing()
        alive = weakref.ref(thing)
        held = [thing]
        look(sys._getframe())
        del thing, held
        return alive()

    assert loop() is None


def test_a_dictionary_of_locals_that_the_program_holds_is_not_refreshed():
    def loop(snapshot):
        value = 1
        mine = snapshot()
        value = 2
        look(sys._getframe())
        return mine["value"], value

    def plain_loop():
        value = 1
        mine = locals()
        value = 2
        look(sys._getframe())
        return mine["value"], value

    assert plain_loop() == (1, 2)
    # Reached in another way, it may be refreshed, as by a debugger, but it is not emptied.
    assert loop(lambda: sys._getframe(1).f_locals) == (2, 2)


def test_cycles_and_broken_objects_do_no_harm():
    cycle: list = []
    cycle.append(cycle)

    class Broken:
        __dict__ = property(lambda self: 1 / 0)

    broken = [Broken()]
    assert probe()["entries"]["cycle"]["len"] == len(broken)


def test_it_is_bounded():
    nested = [[[str(k) for k in range(60)] for _ in range(60)] for _ in range(60)]
    result = probe()
    assert len(result["entries"]) <= retention.ENTRY_LIMIT
    assert result["entries"]["nested"]["len"] == len(nested)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.tuples(inner) | st.sets(st.integers()) | st.dictionaries(st.text() | st.integers() | st.binary(), inner)))  # fmt: skip
@settings(deadline=None, max_examples=50)
def test_any_data_is_counted_and_stays_json(data):
    result = probe()
    json.dumps(result)
    if isinstance(data, (list, tuple, set, dict)):
        assert result["entries"]["data"]["len"] == len(data)


def test_the_random_state_stays_what_it_was():
    torch = pytest.importorskip("torch")
    before = torch.random.get_rng_state()
    probe()
    assert torch.equal(before, torch.random.get_rng_state())


def test_it_imports_the_standard_library_only_and_no_torch():
    code = f"""
    import importlib.util, sys
    spec = importlib.util.spec_from_file_location(
        "unstall", {str(SOURCE.parent.parent / "__init__.py")!r},
        submodule_search_locations=[{str(SOURCE.parent.parent)!r}],
    )
    module = sys.modules["unstall"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from unstall.child import memory, retention
    items = [1]
    assert retention.probe(sys._getframe())["entries"]["items"]["len"] == 1
    assert not {{"torch", "numpy", "msgspec", "psutil", "rich"}} & set(sys.modules)
    """
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
