"""What all tests share."""

import os

from hypothesis import settings

# On the server a failure must come back when one looks for it; at a desk new examples are welcome.
settings.register_profile("server", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("server")
