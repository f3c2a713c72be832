"""What the Perfetto UI does once it has opened the trace.

A view cannot be stored in a trace: the UI takes it from its address. The parameters are those of
its router (`url`, `visStart`, `visEnd`, `startupCommands`), the commands those that it keeps
stable (`STARTUP_COMMAND_ALLOWLIST`); both as in v52, which newer versions accept too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Command", "Startup", "parameters", "settings_script"]

Command = tuple[str, ...]
"""Name of a command of the UI without `dev.perfetto.`, and its arguments."""


@dataclass(frozen=True, slots=True)
class Startup:
    """How a trace is shown first.

    Attributes:
        visible_ns: from when to when, in the time of the trace; None for all of it.
        commands: what the UI does then, in this order.
        packages: PerfettoSQL that queries can include: SQL by module name, by package.
    """

    visible_ns: tuple[int, int] | None = None
    commands: tuple[Command, ...] = ()
    packages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def parameters(startup: Startup) -> dict[str, str]:
    """The parameters of the UI's address, without the trace."""
    found: dict[str, str] = {}
    if startup.visible_ns is not None:
        start, end = startup.visible_ns
        found |= {"visStart": str(start), "visEnd": str(end)}
    if startup.commands:
        calls = [
            {"id": f"dev.perfetto.{name}", "args": list(arguments)}
            for name, *arguments in startup.commands
        ]
        found["startupCommands"] = json.dumps(calls)
    return found


def settings_script(trace: str, startup: Startup) -> bytes:
    """The script that hands a startup to `boot.js`.

    Args:
        trace: where the trace is, from the page's address.
        startup: what else is handed over.
    """
    packages = [
        {"name": name, "modules": [{"name": module, "sql": sql} for module, sql in modules.items()]}
        for name, modules in startup.packages.items()
    ]
    settings = {"trace": trace, "parameters": parameters(startup), "packages": packages}
    # JSON in ASCII is JavaScript, whatever the names in it.
    return f"window.perfdiag = {json.dumps(settings)};\n".encode("ascii")
