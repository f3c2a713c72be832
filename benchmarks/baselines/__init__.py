"""What other tools would say of the same windows, each by its published rule.

A rule sees what an ordinary tool sees in the trace of one rank, in one window; its labels are those
of this project, and `unknown` is an abstention. Each module says which outcome of the tool is which
label, and where the rule errs as published. `hta_itself` and `gpu_idle_itself` run two of the
tools.
"""

from collections.abc import Iterable, Mapping

from baselines.gpu_idle import GPU_IDLE
from baselines.hta_bound_by import HTA_BOUND_BY
from baselines.hta_breakdown import HTA_BREAKDOWN
from baselines.majority import fit_majority
from baselines.ncu_sol import NCU_SOL
from baselines.nsys_ai import NSYS_AI
from baselines.rule import Baseline
from baselines.tb_plugin import TB_PLUGIN
from baselines.tracelens import TRACELENS
from baselines.xprof import XPROF
from perfdiag.trace_schemas.report import Label

__all__ = ["BASELINES", "Baseline", "fit_majority", "with_majority"]

_ALL = (
    XPROF,
    HTA_BREAKDOWN,
    HTA_BOUND_BY,
    GPU_IDLE,
    TRACELENS,
    TB_PLUGIN,
    NCU_SOL,
    NSYS_AI,
)

BASELINES: Mapping[str, Baseline] = {rule.name: rule for rule in _ALL}
"""The rules that need no training, by name."""


def with_majority(train: Iterable[Label]) -> Mapping[str, Baseline]:
    """All rules, the majority class of some training labels first.

    Raises:
        ValueError: there is no training label.
    """
    majority = fit_majority(train)
    return {majority.name: majority, **BASELINES}
