"""What share of a device's peak arithmetic comes to: nothing above it is believed."""

from typing import NamedTuple

from perfdiag.trace_schemas.devices import Peak
from perfdiag.trace_schemas.notices import Notice

__all__ = ["Utilisation", "utilisation"]


class Utilisation(NamedTuple):
    """A share of the peak, with numerator and denominator; `share` is None where it is no figure.

    `problem`: the notice that says why there is none; None where there is.
    """

    share: float | None
    flops_per_s: float
    peak_flops_per_s: float | None
    problem: Notice | None = None


def utilisation(flops_per_s: float, peak: Peak | None, device: str, dtype: str = "") -> Utilisation:
    """Set what one device computes beside its own dense peak by data sheet.

    Args:
        flops_per_s: of one device: a sum over ranks is to be divided by their number.
        peak: of that device, in the type of the operands; None where it is not known.
        device: its name, for the notice.
        dtype: that type, for the notice.
    """
    if peak is None:
        which = f"{device or 'this device'} in {dtype}" if dtype else device or "this device"
        message = f"No peak of {which} is known: no utilisation is given."
        return Utilisation(None, flops_per_s, None, Notice("mfu.no_peak", "info", 1, message))
    share = flops_per_s / peak.datasheet
    if share <= 1.0:
        return Utilisation(share, flops_per_s, peak.datasheet)
    message = (
        f"{flops_per_s / 1e12:.4g} TFLOP/s of {peak.datasheet / 1e12:.4g} on {device} would be "
        f"{share:.0%} of the peak, which cannot be: device, type or inputs of operators are "
        "not what the trace says. No utilisation is given."
    )
    problem = Notice("mfu.impossible", "warning", 1, message)
    return Utilisation(None, flops_per_s, peak.datasheet, problem)
