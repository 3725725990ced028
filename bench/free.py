"""Run a program with one of its functions made free by hand: what its first calls returned is its answer from then on.

    python bench/free.py Class.method ANSWERS program.py [arguments]

The truth for `make simplify-bench`, got without unstall: a decorator is put on the function in the parsed source.
"""

from __future__ import annotations

import ast
import collections
import functools
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAME = "_kept_answers"


def kept(answers: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the first calls from each place are made, then their answers come in turn."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        places: dict[Any, list[Any]] = collections.defaultdict(list)
        turn = itertools.count()

        @functools.wraps(function)
        def answer(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            given = places[caller.f_code, caller.f_lasti]
            if len(given) < answers:
                given.append(function(*args, **kwargs))
                return given[-1]
            return given[next(turn) % answers]

        return answer

    return decorate


def decorated(source: str, path: str, qualified: str, answers: int) -> ast.Module:
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
    place.decorator_list.append(ast.parse(f"{NAME}({answers})", mode="eval").body)
    return ast.fix_missing_locations(tree)


def main() -> None:
    """Become the program."""
    qualified, answers, script, *words = sys.argv[1:]
    tree = decorated(Path(script).read_text(encoding="utf-8"), script, qualified, int(answers))
    sys.argv = [script, *words]
    sys.path[0] = str(Path(script).resolve().parent)
    main_module = sys.modules["__main__"].__dict__
    main_module.update({"__file__": script, NAME: kept})
    exec(compile(tree, script, "exec"), main_module)


if __name__ == "__main__":
    main()
