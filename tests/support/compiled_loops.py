"""Loops of little programs as `compile-loop` writes them, beside what they were."""

from __future__ import annotations

import copy
import textwrap

from optimize_builders import make_module

from unstall.optimize.compiling import compiled


def line_of(source, text):
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def changed(source, at):
    """The source with the loop around the line compiled."""
    source = textwrap.dedent(source)
    return compiled(make_module(source), line_of(source, at)).tree.code


def loaded(source):
    space = {"__name__": "program"}
    exec(compile(source, "program.py", "exec"), space)
    return space


def both(source, at, name):
    """A function as it is, as it becomes, and the loop that was compiled in it."""
    source = textwrap.dedent(source)
    new = loaded(changed(source, at))
    loop = next(value for key, value in new.items() if type(value).__name__ == "_CompiledLoop")
    return loaded(source)[name], new[name], loop


def agree(source, at, name, *arguments):
    """Assert that the function does the same as before, compiled, to the type and the last bit; what it gives."""
    old, new, loop = both(source, at, name)
    given_old, given_new = copy.deepcopy(arguments), copy.deepcopy(arguments)
    expected, result = old(*given_old), new(*given_new)
    assert repr(result) == repr(expected)
    assert repr(given_new) == repr(given_old)
    assert [kernel is not None for kernel in loop.kernels.values()] == [True]
    return result
