"""Run a program of the zoo with one of its functions free by hand, and not, in turn; print the ratios of its rates.

    python bench/free.py Class.method program.py [arguments]

The truth for `make simplify-bench`, got without unstall: a decorator is put on the function in the parsed source, which
calls it for 2.5 seconds, gives what its first calls returned for the next 2.5, and so on. All of it is in one process:
two processes that run the same program, and two minutes of a shared machine, differ by a third. The rates are those of
the program's own clock, but for the first part of each turn, in which what was prepared before is used up.
"""

from __future__ import annotations

import ast
import atexit
import collections
import functools
import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ticks

NAME = "_kept_answers"
TURN_S, SETTLE_S = 2.5, 0.8
COLLECT_S = 4.0
"""How long first answers are collected, and what is left out at the beginning."""
FEWEST, MOST, MOST_BYTES = 4, 4096, 256 << 20
"""Answers kept of each call site. Few of them the processor learns by heart: with four, plain_generator is a fifth
faster than with 256. The program itself never meets the same again."""


def is_free(turn: int) -> bool:
    """Whether the function is free in this turn. The clock is the machine's: workers and main process agree."""
    return turn % 2 == 1


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: in every other turn, the answers to the first calls from each place come again."""
    places: dict[Any, list[Any]] = collections.defaultdict(list)
    count, began, room = itertools.count(), time.monotonic(), MOST_BYTES

    @functools.wraps(function)
    def answer(*args: Any, **kwargs: Any) -> Any:
        nonlocal began, room
        caller, now = sys._getframe(1), time.monotonic()
        if not places:
            began = now
        given = places[id(caller.f_code), caller.f_lasti]  # hashing the code takes longer than all the rest
        if len(given) < (MOST if now - began < COLLECT_S and room > 0 else FEWEST):
            given.append(function(*args, **kwargs))
            room -= size(given[-1])
            return given[-1]
        if is_free(int(now / TURN_S)):
            return given[next(count) % len(given)]
        return function(*args, **kwargs)

    return answer


def size(answer: Any) -> int:
    """Bytes of an array, of bytes, or of what a tuple or list holds of them."""
    if isinstance(answer, (tuple, list)):
        return sum(map(size, answer))
    return int(getattr(answer, "nbytes", 0)) or sys.getsizeof(answer, 0)


def decorated(source: str, path: str, qualified: str) -> ast.Module:
    """The program's tree with the decorator on the function. Raises SystemExit if there is no such function."""
    tree = ast.parse(source, path)
    place: Any = tree
    for name in qualified.split("."):
        found = [
            node
            for node in place.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
        ]  # fmt: skip
        if not found:
            raise SystemExit(f"{path} has no {qualified}")
        place = found[0]
    place.decorator_list.append(ast.Name(NAME, ast.Load()))
    return ast.fix_missing_locations(tree)


def rates(seen: Sequence[ticks.Tick]) -> dict[int, float]:
    """Steps a second in each turn, from its settled part; turns with fewer than two ticks there are left out."""
    by_turn: dict[int, list[ticks.Tick]] = collections.defaultdict(list)
    for at, steps in seen:
        if at - seen[0][0] >= COLLECT_S and at % TURN_S >= SETTLE_S:
            by_turn[int(at / TURN_S)].append((at, steps))
    return {turn: ticks.rate(inside) for turn, inside in by_turn.items() if len(inside) >= 2}


def log_ratios(rate: dict[int, float]) -> list[float]:
    """Of each free turn over the turns before and after it."""
    return [
        math.log(rate[turn] / math.sqrt(rate[turn - 1] * rate[turn + 1]))
        for turn in rate
        if is_free(turn) and turn - 1 in rate and turn + 1 in rate
    ]


def tell(seen: Sequence[ticks.Tick]) -> None:
    """Print the logarithm of each free turn's ratio."""
    print("log_free_over_slow=" + ",".join(f"{value:.4f}" for value in log_ratios(rates(seen))), flush=True)


def main() -> None:
    """Become the program."""
    qualified, script, *words = sys.argv[1:]
    tree = decorated(Path(script).read_text(encoding="utf-8"), script, qualified)
    sys.argv = [script, *words]
    sys.path[0] = str(Path(script).resolve().parent)
    seen: list[ticks.Tick] = []
    ticks.watch(seen.append)
    atexit.register(tell, seen)
    main_module = sys.modules["__main__"].__dict__
    main_module.update({"__file__": script, NAME: kept})
    exec(compile(tree, script, "exec"), main_module)


if __name__ == "__main__":
    main()
