"""The period of a sequence that repeats, such as the launches of training steps."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["repeating_period"]

LEAST_PERIOD = 8
"""Shorter sequences repeat inside steps: a layer, an optimizer's loop."""
LEAST_REPEATS = 3
LEAST_MATCH = 0.98
"""Of the elements, so many must equal the one a period later."""
_SEED = 0x5EED


def repeating_period(tokens: NDArray[np.integer]) -> tuple[int, int, int] | None:
    """The repeating part of a sequence as (first element, period, repeats), or None.

    Each token becomes a random point on the unit circle; the autocorrelation of the points at
    a lag is then close to the share of elements that equal the one that far behind, for all
    lags at the cost of one Fourier transform. The best lags are checked exactly.
    """
    n = len(tokens)
    if n < LEAST_PERIOD * LEAST_REPEATS or len(np.unique(tokens)) < LEAST_REPEATS:
        return None
    share = _match_shares(tokens)
    lags = np.arange(len(share))
    allowed = (lags >= LEAST_PERIOD) & (lags <= n // LEAST_REPEATS)
    noise = 4.0 / np.sqrt(np.maximum(n - lags, 1))
    if any((tokens[lag:] == tokens[:-lag]).mean() >= LEAST_MATCH for lag in range(1, LEAST_PERIOD)):
        return None
    for lag in lags[allowed & (share + noise >= LEAST_MATCH)].tolist():
        same = tokens[lag:] == tokens[:-lag]
        first, length = _longest_run(same)
        repeats = (length + lag) // lag
        if repeats >= LEAST_REPEATS and length + lag >= 0.8 * n and same.mean() >= 0.8:
            return first, lag, repeats
    return None


def _match_shares(tokens: NDArray[np.integer]) -> NDArray[np.float64]:
    n = len(tokens)
    _, codes = np.unique(tokens, return_inverse=True)
    angles = np.random.default_rng(_SEED).uniform(0, 2 * np.pi, int(codes.max()) + 1)
    points = np.exp(1j * angles[codes])
    spectrum = np.fft.fft(points, 2 * n)
    products = np.fft.ifft(np.abs(spectrum) ** 2)[: n // 2 + 1].real
    return np.asarray(products / np.maximum(n - np.arange(n // 2 + 1), 1), np.float64)


def _longest_run(same: NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    if not len(edges):
        return 0, 0
    starts, ends = edges[0::2], edges[1::2]
    best = int(np.argmax(ends - starts))
    return int(starts[best]), int(ends[best] - starts[best])
