"""A sum that is kept on the device is the same number to the bit, and is read only where it is used."""

from __future__ import annotations

import textwrap

import pytest
from optimize_builders import make_module

from unstall.optimize.remedies.defer_item import deferred, find

TRAIN = """
    def f(losses, say):
        told = []
        for epoch in range(2):
            running = 0.0
            for step, loss in enumerate(losses):
                loss.backward()
                running += loss.item()  # so far
                if step % 3 == 2:
                    told.append(running / 3)
                    running = 0.0
            say(epoch, running)
        return told
"""


def test_the_same_numbers():
    torch = pytest.importorskip("torch")
    text = textwrap.dedent(TRAIN).lstrip()
    module = make_module(text)
    changed = deferred(module, find(module, {6})).code
    assert "running += loss.detach().double()  # so far" in changed and "float(running) / 3" in changed
    torch.manual_seed(0)
    values = torch.rand(8) * 1e3
    results = []
    for source in (text, changed):
        said, space = [], {}
        exec(source, space)
        leaves = [value.clone().requires_grad_() for value in values]
        told = space["f"](leaves, lambda *given, said=said: said.append(given))
        assert all(type(one) is float for one in told) and type(said[0][1]) is float
        results.append((told, said))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("running = 0.0\n        for", "running = start\n        for"),
        ("if step % 3 == 2:", "if running > 2:"),
        ("loss.backward()", "loss.backward(); print(running)"),
        ("running += loss.item()", "running -= loss.item()"),
        ("running += loss.item()", "running += len(loss)"),
        ("    told = []\n", "    told = []\n    read = lambda: running\n"),
        ("    told = []\n", "    global running\n    told = []\n"),
        ("running += loss.item()", "running += loss.item()\n            running *= 2"),
    ],
)
def test_what_is_read_in_every_step_or_elsewhere_is_left(old, new):
    text = textwrap.dedent(TRAIN).lstrip()
    assert old in text
    changed = text.replace(old, new, 1)
    line = next(number for number, one in enumerate(changed.splitlines(), 1) if "backward" in one)
    assert find(make_module(text), {6}) and find(make_module(changed), {line}) == []
