"""perfdiag: find what bounds each part of a training step, and whose fix it is."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("perfdiag")
