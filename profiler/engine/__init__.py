"""Perfetto's trace processor, embedded or native, behind one interface."""

from perfdiag.profiler.engine.assets import Assets, find_assets
from perfdiag.profiler.engine.columns import Table
from perfdiag.profiler.engine.session import EngineName, Session, open_session

__all__ = ["Assets", "EngineName", "Session", "Table", "find_assets", "open_session"]
