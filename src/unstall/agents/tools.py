"""The tools of the server: each is a command of ``unstall``, with what it is for as an agent should know it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from unstall.agents import answers, shapes
from unstall.agents.calls import CallFailed, ToolCall, ToolCalls

Server: TypeAlias = Context[ToolCalls, Any]
Program = Annotated[
    list[str],
    Field(
        min_length=1,
        description="The program, word by word: a script and its arguments, -m and a module, or -- and any command.",
    ),
]
Folder = Annotated[str | None, Field(description="Working directory; the server's own if not given.")]
Budget = Annotated[int, Field(ge=1, description="Seconds to spend on measuring.")]
RunId = Annotated[str, Field(description="A run's id, its beginning or end, or last.")]
Network = Annotated[bool, Field(description="Let the program send to the network, from inside the sandbox.")]


async def run(
    program: Program,
    server: Server,
    steps: Annotated[int | None, Field(ge=1, description="Stop after so many measured steps; 100 are enough.")] = None,
    folder: Folder = None,
) -> shapes.ReportAnswer:
    """Run a training program unchanged, for real: what stalls it, in which line, how much faster it could be.

    The first step of any work on speed.
    """
    options = ["--steps", str(steps)] if steps else []
    return answers.run(await _make(server, "run", [*options, *_words(program)], folder, measures=True))


async def simplify(
    program: Program,
    server: Server,
    stub: Annotated[list[str] | None, Field(description="Functions or kinds of work to remove; else it picks.")] = None,
    budget_s: Budget = 300,
    allow_network_writes: Network = False,
    folder: Folder = None,
) -> shapes.SimplifyAnswer:
    """Measure in a sandbox how much faster a program is without each component: the ceiling of every fix."""
    options = [word for name in stub or () for word in ("--stub", name)]
    words = [*options, *_sandboxed(budget_s, allow_network_writes), *_words(program)]
    return answers.simplify(await _make(server, "simplify", words, folder, measures=True, budget_s=budget_s))


async def data(
    program: Program,
    server: Server,
    budget_s: Budget = 30,
    allow_network_writes: Network = False,
    folder: Folder = None,
) -> shapes.DataAnswer:
    """Measure a program's data pipeline alone, in a sandbox: each stage, then other numbers of workers."""
    words = [*_sandboxed(budget_s, allow_network_writes), *_words(program)]
    return answers.data(await _make(server, "data", words, folder, measures=True, budget_s=budget_s))


async def what_if(
    server: Server,
    run: RunId = "last",
    workers: Annotated[int | None, Field(ge=0, description="DataLoader workers.")] = None,
    changes: Annotated[
        list[str] | None, Field(description="NAME=CHANGE of a phase or function: 0.5x, -20%, free, async.")
    ] = None,
    folder: Folder = None,
) -> shapes.WhatIfAnswer:
    """Predict from a recorded run what a change would bring; without a change, which would bring the most."""
    words = ["--workers", str(workers)] if workers is not None else []
    words += [word for change in changes or () for word in ("--set", change)]
    return answers.what_if(await _make(server, "what-if", [*words, "--", run], folder))


async def optimize(
    program: Program,
    server: Server,
    budget_s: Budget = 900,
    quick: Annotated[bool, Field(description="Stop with the first change that pays.")] = False,
    allow_network_writes: Network = False,
    folder: Folder = None,
) -> shapes.OptimizeAnswer:
    """Try known remedies in a sandbox, keep those proven faster with the same results, and return them as a patch.

    Changes no file of the program.
    """
    options = ["--quick"] if quick else []
    words = [*options, *_sandboxed(budget_s, allow_network_writes), *_words(program)]
    return answers.optimize(await _make(server, "optimize", words, folder, measures=True, budget_s=budget_s))


async def prove(
    program: Program,
    server: Server,
    patch: Annotated[str | None, Field(description="The change: a file with a diff, as git apply takes it.")] = None,
    against: Annotated[
        str | None, Field(description="Or what the working tree is judged against: a revision or a folder; A..B.")
    ] = None,
    budget_s: Budget = 900,
    allow_network_writes: Network = False,
    folder: Folder = None,
) -> shapes.ProveAnswer:
    """Judge a change by running both programs in a sandbox: proven (faster, and the same), different, not-faster,
    inconclusive or refused. Give a program that ends within seconds or minutes: it is run 35 times or more.
    """
    if (patch is None) == (against is None):
        raise ToolError("give either patch or against: the change is judged as a diff, or against something")
    change = ["--patch", patch] if patch is not None else ["--against", str(against)]
    words = [*change, *_sandboxed(budget_s, allow_network_writes), *_words(program)]
    return answers.prove(await _make(server, "prove", words, folder, measures=True, budget_s=budget_s))


async def compare(
    server: Server,
    before: RunId,
    after: RunId = "last",
    folder: Folder = None,
) -> shapes.CompareAnswer:
    """Compare the speed of two recorded runs, with an interval: use it after a change, never two single numbers."""
    return answers.compare(await _make(server, "compare", ["--", before, after], folder))


async def trace(
    files: Annotated[list[str], Field(min_length=1, description="torch.profiler traces or Nsight Systems exports.")],
    server: Server,
    folder: Folder = None,
) -> shapes.ReportAnswer:
    """Read GPU traces that somebody has recorded: what stalls the device, and what a fix would gain."""
    return answers.run(await _make(server, "trace", ["--", *files], folder))


async def report(server: Server, run: RunId = "last", folder: Folder = None) -> shapes.ReportAnswer:
    """The report of a recorded run, without running anything."""
    return answers.run(await _make(server, "report", ["--", run], folder))


async def history(
    server: Server,
    words: Annotated[list[str] | None, Field(description="Only runs with all of these in their command.")] = None,
    most: Annotated[int, Field(ge=1, le=100)] = 10,
    folder: Folder = None,
) -> shapes.HistoryAnswer:
    """The recorded runs of a project, the newest first: speed, verdict, culprit."""
    return answers.history(await _make(server, "history", ["-n", str(most), "--", *(words or ())], folder))


TOOLS: tuple[Callable[..., Any], ...] = (
    run, simplify, data, what_if, optimize, prove, compare, trace, report, history,
)  # fmt: skip
"""The tools in the order of the work; a new one is a function above, its answer in :mod:`unstall.agents.answers`."""


async def _make(
    server: Server,
    verb: str,
    words: list[str],
    folder: str | None,
    *,
    measures: bool = False,
    budget_s: int | None = None,
) -> ToolCall:
    """Run a command; its failure is one line, as on a terminal."""

    async def on_progress(seconds: float, line: str) -> None:
        await server.report_progress(seconds, budget_s, line or verb)

    calls = server.request_context.lifespan_context
    cwd = Path(folder or os.curdir).absolute()
    try:
        return await calls.make(verb, words, cwd=cwd, on_progress=on_progress, measures=measures)
    except CallFailed as error:
        raise ToolError(str(error)) from error


def _words(program: list[str]) -> list[str]:
    """The program's words; an option of unstall's is no program."""
    if program[0].startswith("-") and program[0] not in ("-m", "--"):
        raise ToolError(f"{program[0]} is no program: give a script, -m MODULE or -- COMMAND")
    return program


def _sandboxed(budget_s: int, allow_network_writes: bool) -> list[str]:
    return ["--budget", f"{budget_s}s", *(["--allow-network-writes"] if allow_network_writes else [])]
