"""What a call of a runtime or driver does, by its name.

The names are data: see `apis.toml`.
"""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

__all__ = ["API_ROLES", "classify_api"]

_ROWS = tomllib.loads(Path(__file__).with_name("apis.toml").read_text(encoding="utf-8"))["roles"]

API_ROLES: tuple[str, ...] = (*(row["role"] for row in _ROWS), "other")
"""`launch` and `graph_launch` start device work, `copy` and `fill` queue a transfer, `sync` blocks
the host until the device is done, `event` records or polls an event, `alloc` allocates or frees,
`load` loads code onto the device.
"""

_RULES: list[tuple[re.Pattern[str], str]] = [
    (re.compile("|".join(f"(?:{pattern})" for pattern in row["patterns"])), row["role"])
    for row in _ROWS
]
_DECORATION = re.compile(r"^\w+@(?=acl|rt)|(?:_v\d+|_ptsz|_ptds|_spt)+$")


@lru_cache(maxsize=1 << 14)
def classify_api(name: str) -> str:
    """Role of the runtime or driver call `name`: one of `API_ROLES`."""
    bare = _DECORATION.sub("", name)
    return next((role for pattern, role in _RULES if pattern.fullmatch(bare)), "other")
