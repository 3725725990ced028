"""Runs many commands in one process, under the limits: a line of JSON for each, in and out. Started by fuzz_limits."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import traceback
from pathlib import Path

BYTES = 1 << 30


def command(arguments: list[str]) -> int:
    from unstall.cli.main import app

    try:
        app(arguments, prog_name="unstall")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def remedies(path: str) -> int:
    """``unstall run --with``, without the program."""
    from unstall.cli.exits import warn
    from unstall.optimize.remedies_file import RemediesError, read

    try:
        read(Path(path))
    except RemediesError as error:
        warn(str(error))
        return 2
    return 0


def recording(folder: str) -> int:
    """What ``unstall run`` reads when a program has ended. Any exception there becomes a line: see cli/run.py."""
    from unstall.benchmark.measure import measure
    from unstall.benchmark.reader import read_all
    from unstall.cli.exits import warn
    from unstall.records.observations import Observation

    try:
        measure(read_all(Path(folder)), Observation(0.0, 100.0))
    except MemoryError:
        raise
    except Exception as error:
        warn(f"the report could not be made: {type(error).__name__}: {error}")
    return 0


def main() -> None:
    replies, sys.stdout = sys.stdout, io.StringIO()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for line in sys.stdin:
        arguments, folder = json.loads(line)
        os.chdir(folder)
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                functions = {"@remedies": remedies, "@recording": recording}
                function = functions.get(arguments[0])
                code = function(*arguments[1:]) if function else command(arguments)
            except BaseException:
                traceback.print_exc()
                code = 1
            out.flush()
            err.flush()
        ended = [code, *(stream.buffer.getvalue().decode() for stream in (out, err))]
        print(json.dumps(ended), file=replies, flush=True)


if __name__ == "__main__":
    main()
