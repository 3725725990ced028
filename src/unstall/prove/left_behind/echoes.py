"""Settings of the change that the program prints: ``num_workers: 4`` in the original, ``num_workers: 0`` now.

Programs print their arguments, or write them beside their results. What a change sets is no result of it: such a line
is compared without that value, where it is, under its name, what the source of a side says.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from unstall.prove.trees import Sides


class Echo(NamedTuple):
    """A setting that the change gives another value."""

    name: str
    before: str
    """As Python prints it."""
    after: str


def of_change(sides: Sides) -> Sequence[Echo]:
    """The settings that have one value in the original's sources and another one in the changed program's."""
    before, after = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for _, original, changed in sides.differing:
        for content, settings in ((original, before), (changed, after)):
            try:
                settings.update(_settings(ast.parse(content or b"")))
            except (SyntaxError, ValueError, RecursionError):
                continue
    removed, added = _by_name(before - after), _by_name(after - before)
    both = removed.keys() & added.keys()
    return [Echo(name, *removed[name], *added[name]) for name in sorted(both) if len(removed[name] + added[name]) == 2]


def masked(text: str, echoes: Sequence[Echo]) -> str:
    """A text of either side without the values of these settings."""
    for name, *values in echoes:
        either = "|".join(map(re.escape, values))
        text = re.sub(rf"(\b{re.escape(name)}\b['\"]?\s*[:=]\s*['\"]?)(?:{either})(?![\w.])", r"\1…", text)
    return text


def _by_name(settings: Counter[tuple[str, str]]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, value in settings:
        names.setdefault(name, []).append(value)
    return names


def _settings(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(name, value) of all that a source sets to a number, or to true or false."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg and node.arg != "default":
            yield from _setting(node.arg, node.value)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from _setting(getattr(target, "attr", getattr(target, "id", "")), node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from _setting(key.value, value)
        elif isinstance(node, ast.arguments):
            for argument, given in zip(reversed([*node.posonlyargs, *node.args]), reversed(node.defaults)):
                yield from _setting(argument.arg, given)
            for argument, maybe in zip(node.kwonlyargs, node.kw_defaults):
                yield from _setting(argument.arg, maybe)
        elif isinstance(node, ast.Call):  # of argparse, click and their like: "--num-workers", default=4
            options = [word.value for word in node.args if isinstance(word, ast.Constant)]
            default = next((word.value for word in node.keywords if word.arg == "default"), None)
            for option in options:
                if isinstance(option, str) and option.startswith("--"):
                    yield from _setting(option[2:].replace("-", "_"), default)


def _setting(name: str, value: ast.expr | None) -> Iterator[tuple[str, str]]:
    if name and isinstance(value, ast.Constant) and isinstance(value.value, (bool, int, float)):
        yield name, repr(value.value)
