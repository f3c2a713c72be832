"""perfdiag: find what bounds each part of a training step, and whose fix it is."""

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Look the version up when it is asked for: reading package metadata takes 0.1 s."""
    if name == "__version__":
        from importlib.metadata import version

        return version("perfdiag")
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
