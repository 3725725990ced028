"""``unstall mcp``: the tools of unstall for coding agents."""

from __future__ import annotations

from unstall.cli import options
from unstall.cli.exits import Exit, needs_extra
from unstall.cli.signals import ending_at_once


@options.command("mcp", short_help="Serve coding agents over stdio.")
def verb() -> int:
    """Serve coding agents over stdio with the Model Context Protocol; `unstall setup-agent` sets clients up."""
    with needs_extra("mcp"), ending_at_once():
        from unstall.agents.server import serve

    serve()
    return Exit.OK
