"""perfdiag: find what bounds each part of a training step, and whose fix it is."""

__all__ = ["__version__"]

__version__ = "0.1.0"
