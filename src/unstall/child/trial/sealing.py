"""The plan of a trial, sealed: a program that looks for a word in its environment finds none.

It is no secret, and no two times looks the same; the same length, for all that is short, tells nothing either.
"""

from __future__ import annotations

import base64
import os

_KEY, _BLOCK = 32, 1024


def sealed(text: str) -> str:
    """A text as it goes into the environment."""
    content = text.encode()
    padded = content.ljust(-(-len(content) // _BLOCK) * _BLOCK)
    key = os.urandom(_KEY)
    return base64.b64encode(key + _mixed(padded, key)).decode()


def opened(text: str) -> str:
    """What was sealed; JSON that was not as it is."""
    if text.startswith("{"):
        return text
    content = base64.b64decode(text)
    return _mixed(content[_KEY:], content[:_KEY]).decode().rstrip()


def _mixed(content: bytes, key: bytes) -> bytes:
    repeated = key * (len(content) // len(key) + 1)
    return bytes(a ^ b for a, b in zip(content, repeated))
