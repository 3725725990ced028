"""``unstall mcp``: a server of the Model Context Protocol on stdin and stdout."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

import unstall
from unstall.agents.calls import ToolCalls
from unstall.agents.tools import TOOLS, Server
from unstall.sandbox import leftovers

_PREFIX = "unstall-mcp-"
_INSTRUCTIONS = (
    "Finds what stalls a training program. In this order: run (what stalls it), simplify (the ceiling, by experiment),"
    " optimize or your own change, compare. Trust intervals, and what is measured over what is predicted or estimated."
    " Answers are short: read a resource only where you need the rest."
)


def serve() -> None:
    """Serve until stdin is closed, or a signal comes; then every command that still runs is ended."""
    leftovers.remove_abandoned([Path(tempfile.gettempdir())], _PREFIX)
    with leftovers.claimed(lambda: Path(tempfile.mkdtemp(prefix=_PREFIX))) as folder:
        anyio.run(_serve, folder)


async def _serve(folder: Path) -> None:
    calls = ToolCalls(folder)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_leave_on_signal, calls, folder)
        await make_server(calls).run_stdio_async()
        tasks.cancel_scope.cancel()


async def _leave_on_signal(calls: ToolCalls, folder: Path) -> None:
    """The thread that reads stdin cannot be ended, so that the process ends here."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            await calls.end_all()
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(128 + number)


def make_server(calls: ToolCalls) -> MCPServer[ToolCalls]:
    """The server with its tools and resources."""

    @asynccontextmanager
    async def lifespan(_: MCPServer[ToolCalls]) -> AsyncIterator[ToolCalls]:
        yield calls

    server = MCPServer(
        "unstall", version=unstall.__version__, instructions=_INSTRUCTIONS, lifespan=lifespan, log_level="WARNING"
    )
    for tool in TOOLS:
        server.add_tool(tool)
    server.resource("unstall://calls/{number}/{name}", description="More of a tool's answer.")(_read)
    return server


def _read(number: int, name: str, server: Server) -> str:
    text = server.request_context.lifespan_context.read(number, name)
    if text is None:
        raise ResourceNotFoundError(f"there is no {name} of call {number}, or no longer")
    return text
