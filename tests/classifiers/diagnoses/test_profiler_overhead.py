"""Time that the profiler itself costs."""

from typing import Any

from examples.profiler_overhead import fires


def test_it_says_that_the_job_does_not_pay(examine: Any) -> None:
    """Title and sentence say that the time is gone without the profiler."""
    (fix,) = [fix for fix in examine(fires()).fixes if fix.id == "profiler_overhead"]
    assert "no cost without it" in fix.title
    assert "Without recording this time is gone" in fix.why
