"""Other tools themselves, on whole traces of simulated jobs: their verdict beside the truth."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from baselines.gpu_idle_itself import gpu_idle_label
from baselines.hta_itself import hta_labels
from measure import table

from perfdiag.classifiers.analysis import analyze
from perfdiag.classifiers.options import Options
from perfdiag.classifiers.training.metrics import score
from perfdiag.classifiers.training.samples import CLASSES, Domain
from perfdiag.profiler.simulator.draw import draw_spec
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.kineto import TraceOptions, write_job
from perfdiag.profiler.simulator.truth import find_truth
from perfdiag.trace_schemas.report import Label

__all__ = ["Answers", "summary", "tools_table"]

OURS = "perfdiag"


@dataclass(slots=True)
class Answers:
    """Labels of whole traces: the true ones, and what each tool says of them, in one order."""

    truth: list[Label] = field(default_factory=list)
    said: dict[str, list[Label]] = field(default_factory=dict)

    def add(self, truth: Label, said: dict[str, Label]) -> None:
        """One trace more."""
        self.truth.append(truth)
        for name, label in said.items():
            self.said.setdefault(name, []).append(label)


def tools_table(
    seeds: Sequence[int], domain: Domain, hta: Path | None, gpu_idle: Path | None
) -> str:
    """A row a tool, on the first rank's traces of jobs whose bound is clear.

    Args:
        seeds: of the jobs.
        domain: where they are drawn from.
        hta: interpreter that has HolisticTraceAnalysis; None leaves it out.
        gpu_idle: likewise, gpu-idle.
    """
    answers = Answers()
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="perfdiag-accuracy-") as folder:
            truth, trace = _trace(seed, domain, Path(folder))
            if truth is not None:
                answers.add(truth, _said(trace, hta, gpu_idle))
    return summary(answers)


def _trace(seed: int, domain: Domain, folder: Path) -> tuple[Label | None, Path]:
    """What bounds the first rank, None where that is not clear, and its trace."""
    spec, platform = draw_spec(seed, domain.families, domain.platforms)
    job = build_job(spec)
    events = simulate(job, platform, seed)
    verdict = find_truth(job, platform, seed, events).ranks[0].verdict
    alone = type(events)(ranks=events.ranks[:1])
    [path] = write_job(alone, job, platform, TraceOptions(seed=seed, compress=False), folder)
    return None if verdict.ambiguous else verdict.label, path


def _said(trace: Path, hta: Path | None, gpu_idle: Path | None) -> dict[str, Label]:
    said = {OURS: analyze([str(trace)], Options()).ranks[0].label}
    if hta is not None:
        said |= {f"HolisticTraceAnalysis, {k}": v for k, v in hta_labels(trace, hta).items()}
    if gpu_idle is not None:
        said["gpu-idle"] = gpu_idle_label(trace, gpu_idle)
    return said


def summary(answers: Answers) -> str:
    """A row a tool: how good its answers are, and how often it has none."""
    code = {label: position for position, label in enumerate(CLASSES)}
    truth = np.array([code[label] for label in answers.truth], np.int64)
    rows = []
    for name, labels in answers.said.items():
        answer = np.array([code.get(label, -1) for label in labels], np.int64)
        found = score(truth, answer, len(CLASSES))
        shares = (found.macro_f1, found.macro_f1_all, found.accuracy, found.abstained)
        rows.append([name, f"{found.n}", *(f"{share:.3f}" for share in shares)])
    head = ("tool", "traces", "macro-F1, answered", "macro-F1, all", "accuracy", "no answer")
    return table(head, rows)
