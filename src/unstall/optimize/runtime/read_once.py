"""Keeps files as they were parsed, for as long as they do not change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, ClassVar


class _ReadOnce:
    """Files as they were parsed, until they change: the last 64 of each process, up to 256 MiB on disk.

    What it gives is shared by all who ask for it: nobody may change it.
    """

    parsed: ClassVar[dict[Any, Any]] = {}

    @classmethod
    def get(cls, read: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
        """What ``read(path, *args, **kwargs)`` gives."""
        return cls._kept(read, lambda: read(path, *args, **kwargs), path, args, kwargs)

    @classmethod
    def opened(cls, parse: Callable[[Any], Any], path: Any, *args: Any, **kwargs: Any) -> Any:
        """What ``parse`` gives for the file that ``open(path, *args, **kwargs)`` opens."""

        def read() -> Any:
            with open(path, *args, **kwargs) as file:
                return parse(file)

        # A lambda is another one at each call, but its code is the same.
        parser = parse.__code__ if getattr(parse, "__name__", "") == "<lambda>" else parse
        return cls._kept(parser, read, path, args, kwargs)

    @classmethod
    def _kept(cls, reader: Any, read: Callable[[], Any], path: Any, args: Any, kwargs: Any) -> Any:
        try:
            name, status = os.path.abspath(path), os.stat(path)
        except (OSError, TypeError, ValueError):  # no file, or one that is open already
            return read()
        key = reader, name, status.st_mtime_ns, status.st_size, status.st_ino, repr(args), repr(kwargs)
        entry = cls.parsed.pop(key, None)
        if entry is None:
            result = read()
            # The next change of a file that was changed just now may have the same time.
            is_recent = time.time_ns() - status.st_mtime_ns < 1_000_000_000
            is_stream = hasattr(result, "close") or hasattr(result, "__next__")
            if is_recent or is_stream or status.st_size > 1 << 28:
                return result
            entry = result, status.st_size
        cls.parsed[key] = entry  # the last one used comes last
        while len(cls.parsed) > 64 or sum([size for _, size in list(cls.parsed.values())]) > 1 << 28:
            cls.parsed.pop(next(iter(cls.parsed)), None)
        return entry[0]
