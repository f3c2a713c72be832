"""What a verdict draws over the traces that it was drawn from."""

from perfdiag.classifiers.annotations.whole import annotations_of, rank_traces

__all__ = ["annotations_of", "rank_traces"]
