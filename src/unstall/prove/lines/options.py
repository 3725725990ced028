"""Options, environment variables and settings that the program looked at and the changed one does not.

A run has one value of each. What is written in their place is right for that one alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from unstall.prove.lines.sources import Change, ChangedSource
from unstall.prove.lines.syntax import called

_PARAMETERS = ("option", "argument")
"""What click declares as parameters of the decorated function; argparse and absl give attributes."""
_SETTINGS = re.compile(r"(^|_)(config|conf|cfg|settings|hparams|hyperparameters|hps)$", re.IGNORECASE)
"""Names of what is read of a file of settings, or made of their defaults."""
_Reading = tuple[type[ast.AST], str]
"""An attribute or a name that is asked for."""


def first(change: Change) -> str | None:
    """In words, the first of them that both sides take; None where there is none."""
    named = _first_option(change.sources) or _first_unmentioned(change.sources)
    return f"it no longer looks at {named}: with another it does the same" if named else None


def _first_option(sources: Sequence[ChangedSource]) -> str | None:
    after = set().union(*(_read(source.after) for source in sources))
    dropped = set().union(*(_read(source.before) for source in sources)) - after
    if (ast.Name, "vars") in after:  # all of them at once
        return None
    for source in sources:
        taken = dict(_declared(source.before))
        for reading, (option, line) in _declared(source.after):
            if reading in taken and reading in dropped:
                return f"its option {option} ({source.place(line)})"
    return None


def _first_unmentioned(sources: Sequence[ChangedSource]) -> str | None:
    """An environment variable or a setting that is not even mentioned any more."""
    mentioned = _mentioned(sources)
    for source in sources:
        asked = [*((f"the environment variable {name}", name) for name in _variables(source.before)),
                 *((f"its setting {name}", name) for name in _settings(source.before))]  # fmt: skip
        dropped = next((words for words, name in asked if name not in mentioned), None)
        if dropped:
            return dropped
    return None


def _mentioned(sources: Sequence[ChangedSource]) -> set[str]:
    """Attributes and words that the changed program still names, whatever of."""
    nodes = [node for source in sources for node in ast.walk(source.after)]
    words = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    return words | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _declared(tree: ast.AST) -> Iterator[tuple[_Reading, tuple[str, int]]]:
    """(how it is read, (option, line)) of what a parser is told of."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not _declares(called(node)):
            continue
        words = [word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        plain = [word for word in words if not word.startswith("-")]
        option = next((word for word in words if word.startswith("--")), words[0] if words else "")
        given = next((word.value for word in node.keywords if word.arg == "dest"), None)
        name = given.value if isinstance(given, ast.Constant) else (plain or [option])[0].lstrip("-").replace("-", "_")
        if option and isinstance(name, str):
            yield (ast.Name if called(node) in _PARAMETERS else ast.Attribute, name), (option, node.lineno)


def _declares(name: str) -> bool:
    return name in ("add_argument", *_PARAMETERS) or name.startswith("DEFINE_")


def _read(tree: ast.AST) -> set[_Reading]:
    """What a source asks for, by name or with ``getattr``."""
    found: set[_Reading] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add((ast.Attribute, node.attr))
        elif isinstance(node, ast.Call) and called(node) == "getattr":
            found.update((ast.Attribute, str(word.value)) for word in node.args[1:2] if isinstance(word, ast.Constant))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add((ast.Name, node.id))
    return found


def _settings(tree: ast.AST) -> Iterator[str]:
    """Names of the settings that a source reads: ``config.rate``, ``config["rate"]``, ``config.get("rate")``."""
    methods = set()
    for node in ast.walk(tree):  # a call before what is called
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            methods.add(node.func)
            if node.func.attr == "get" and _are_settings(node.func):
                yield from (str(word.value) for word in node.args[:1] if isinstance(word, ast.Constant))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _are_settings(node):
            yield from (str(word.value) for word in [node.slice] if isinstance(word, ast.Constant))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node not in methods:
            yield from [node.attr] if _are_settings(node) else []


def _are_settings(part: ast.Attribute | ast.Subscript) -> bool:
    """Whether it is a part of what has such a name."""
    return bool(_SETTINGS.search(getattr(part.value, "attr", getattr(part.value, "id", ""))))


def _variables(tree: ast.AST) -> Iterator[str]:
    """Names of the environment variables that a source reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _asks_environment(node):
            asked = node.args[:1]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_environment(node.value):
            asked = [node.slice]
        else:
            continue
        yield from (str(word.value) for word in asked if isinstance(word, ast.Constant))


def _asks_environment(call: ast.Call) -> bool:
    """Whether it is of ``os.getenv`` or ``os.environ.get``."""
    is_of_it = isinstance(call.func, ast.Attribute) and _is_environment(call.func.value)
    return called(call) == "getenv" or (is_of_it and called(call) == "get")


def _is_environment(value: ast.expr) -> bool:
    return getattr(value, "attr", getattr(value, "id", "")) == "environ"
