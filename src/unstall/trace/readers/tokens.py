"""Is a text that breaks off valid JSON so far? Python's own parser tells no broken text from an unfinished one."""

from __future__ import annotations

import re

INCOMPLETE, BAD = -1, -2
MAX_DEPTH = 512

_SPACE = re.compile(r"[ \t\r\n]*")
_CHARACTERS = r'"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*'
_STRING = re.compile(_CHARACTERS + '"')
_STRING_SO_FAR = re.compile(_CHARACTERS + r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_SO_FAR = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?)?\Z")
_LITERALS = ("null", "true", "false", "NaN", "Infinity", "-Infinity")


def check(text: str, at: int = 0) -> int:
    """The position behind the JSON value at ``at``, INCOMPLETE if the text ends inside it, BAD if it is none."""
    closers: list[str] = []
    while True:
        at = _skip(text, at)
        if at == len(text):
            return INCOMPLETE
        if text[at] in "{[":
            if len(closers) == MAX_DEPTH:
                return BAD
            closers.append("}" if text[at] == "{" else "]")
            inside = _skip(text, at + 1)
            if text[inside : inside + 1] == closers[-1]:
                at = _after_value(text, inside, closers)
            else:
                at = inside
        else:
            at = _after_value(text, _scalar(text, at), closers)
        if at < 0 or not closers:
            return at
        if closers[-1] == "}":
            at = _key(text, at)
            if at < 0:
                return at


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too


def _after_value(text: str, at: int, closers: list[str]) -> int:
    """Behind the closing brackets and the comma that follow a value."""
    while at >= 0 and closers:
        at = _skip(text, at)
        if at == len(text):
            return INCOMPLETE
        if text[at] == ",":
            return _skip(text, at + 1)
        if text[at] != closers.pop():
            return BAD
        at += 1
    return at


def _key(text: str, at: int) -> int:
    """Behind a key and its colon."""
    if at == len(text):
        return INCOMPLETE
    if text[at] != '"':
        return BAD
    at = _string(text, at)
    if at < 0:
        return at
    at = _skip(text, at)
    if at == len(text):
        return INCOMPLETE
    return at + 1 if text[at] == ":" else BAD


def _string(text: str, at: int) -> int:
    if whole := _STRING.match(text, at):
        return whole.end()
    return INCOMPLETE if _STRING_SO_FAR.match(text, at) else BAD


def _scalar(text: str, at: int) -> int:
    if text[at] == '"':
        return _string(text, at)
    for word in _LITERALS:
        if text.startswith(word, at):
            return at + len(word)
        if len(text) - at < len(word) and word.startswith(text[at:]):
            return INCOMPLETE
    if _NUMBER_SO_FAR.match(text, at):
        return INCOMPLETE
    number = _NUMBER.match(text, at)
    if not number:
        return BAD
    following = text[number.end() : number.end() + 1]
    begun = (following == "." and not number[1] and not number[2]) or (following in tuple("eE") and not number[2])
    return BAD if begun else number.end()
