"""Replay: how far unchanged jobs are off, what that costs, and whether it grows linearly.

Usage: python benchmarks/replay.py [--traces FOLDER] [--rounds 3] [--json FILE]

Real traces first: their steps as the dependency graph has them beside the recorded ones, and how
much of the analysis goes into that. Then generated graphs of 8 ranks, with two threads, two streams
and collectives each: linear growth shows as the same seconds per million nodes.

All are processes of their own: `replay_run.py`.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from measure import Sample, bytecode, interleave, load, machine, summarise, table

HERE = Path(__file__).parent

TRACES = (
    "training/a100_8rank_control.json.gz",
    "training/v100_2rank_test.json.gz",
    "training/mi300_8rank_resnet_act_checkpoint.json.gz",
    "nvidia/v100_ns_resolution_resnet.json.gz",
    "nvidia/h100_qwen1.5_0.5b.json.gz",
    "nvidia/h100_owlv2.json.gz",
    "nvidia/h100_timesformer.json.gz",
    "nvidia/h100_bert_small.json.gz",
    "nvidia/a100_nccl_metadata.json.gz",
    "amd/mi300_falconsai.json.gz",
    "multirank/dlrm_8rank_a100_kineto.tar.gz",
    "multirank/hta_sampled_rank0.json.gz",
    "amd/mi300_vllm_hipgraph_decode.json.gz",
)

NODES = (100_000, 300_000, 1_000_000, 3_000_000)

MEDIAN, P90 = 0.01, 0.03
"""Of a step, by which the replay of a training job may be off."""

TRAINING = TRACES[:5]

MILLION_S = 10.0
"""In which a million nodes must be scheduled and timed."""

Figures = Mapping[str, Any]


def main() -> None:
    """Measure traces and graphs, and print their tables."""
    options = _options()
    print(f"{machine()}; {load()}\n")
    found: dict[str, dict[str, Figures]] = {}
    if options.traces.is_dir():
        traces = {_short(path): options.traces / path for path in TRACES}
        found["traces"] = _measure("trace", traces, options.rounds)
        print(f"{_baselines(found['traces'])}\n\n{_unbelieved(found['traces'])}")
    found["graphs"] = _measure("graph", {f"{n:,}": n for n in options.nodes}, options.rounds)
    print(f"{_growth(found['graphs'])}\n\n{_targets(found)}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = HERE.parent / "../shared/traces/kineto"
    parser.add_argument("--traces", type=Path, default=shared, help="folder with the traces")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, help="sizes of graphs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    return parser.parse_args()


def _short(path: str) -> str:
    """The name of a file without its two endings."""
    return Path(path).with_suffix("").stem


def _measure(what: str, items: Mapping[str, object], rounds: int) -> dict[str, Figures]:
    """Medians over the rounds, of what the processes write and of what they take."""
    with tempfile.TemporaryDirectory() as folder, bytecode() as environment:
        outputs = {name: Path(folder) / f"{n}.jsonl" for n, name in enumerate(items)}
        commands = {
            name: (sys.executable, str(HERE / "replay_run.py"), what, str(item), str(outputs[name]))
            for name, item in items.items()
        }
        samples = interleave(commands, rounds, environment)
        lines = {name: path.read_text(encoding="utf-8") for name, path in outputs.items()}
    return {name: _medians(lines[name], samples[name]) for name in items}


def _medians(lines: str, samples: Sequence[Sample]) -> Figures:
    """The first round does not count; what is no time is the same in all rounds."""
    rounds = [json.loads(line) for line in lines.splitlines()][1:]
    figures = dict(rounds[0])
    for name in (name for name, value in figures.items() if isinstance(value, float)):
        figures[name] = median(one[name] for one in rounds)
    return figures | {"peak_bytes": summarise(samples).peak_bytes}


def _baselines(found: Mapping[str, Figures]) -> str:
    """Every trace that could be replayed: its graph, how far it is off, and what it costs."""
    head = ("trace", "ranks", "steps", "nodes", "edges", "inferred", "median", "p90", "max")
    costs = ("build s", "unchanged s", "changed s", "of the analysis")
    rows = [_baseline(name, figures) for name, figures in found.items() if figures["error"]]
    return table((*head, *costs), rows)


def _baseline(name: str, figures: Figures) -> tuple[str, ...]:
    counts = (figures[what] for what in ("ranks", "steps", "nodes", "edges", "inferred"))
    seconds = [figures[stage] for stage in ("build", "unchanged", "changed")]
    return (
        name,
        *(f"{count:,}" for count in counts),
        *(f"{share:.3%}" for share in figures["error"]),
        *(f"{s:.3f}" for s in seconds),
        f"{sum(seconds) / figures['whole']:.1%}",
    )


def _unbelieved(found: Mapping[str, Figures]) -> str:
    """What is said of traces whose savings are not replayed."""
    lines = [f"- {name}: {one['why']}\n" for name, one in found.items() if not one["believed"]]
    return "".join(lines)


def _growth(found: Mapping[str, Figures]) -> str:
    head = ("graph", "edges", "stretches", "schedule s", "replay s", "16 scenarios s")
    rows = [
        (
            name,
            *(f"{figures[count]:,}" for count in ("edges", "stretches")),
            *(f"{figures[stage]:.2f}" for stage in ("schedule", "replay", "replay_16")),
            f"{_million_s(figures):.2f}",
            f"{figures['peak_bytes'] / 1e6:.0f}",
        )
        for name, figures in found.items()
    ]
    return table((*head, "s per million nodes", "peak MB"), rows)


def _million_s(figures: Figures) -> float:
    """Seconds to schedule and to time a million nodes once."""
    return float(figures["schedule"] + figures["replay"]) / int(figures["nodes"]) * 1e6


def _targets(found: Mapping[str, Mapping[str, Figures]]) -> str:
    rows = []
    for path in TRAINING if "traces" in found else ():
        name = _short(path)
        middle, high, _ = found["traces"][name]["error"] or (1.0, 1.0, 1.0)
        met = middle <= MEDIAN and high <= P90
        shown = f"{middle:.2%}, {high:.2%}"
        rows.append((name, shown, f"median {MEDIAN:.0%}, p90 {P90:.0%}", _word(met=met)))
    worst = max(map(_million_s, found["graphs"].values()))
    shown = f"{worst:.2f} s"
    rows.append(("a million nodes", shown, f"{MILLION_S:.0f} s", _word(met=worst <= MILLION_S)))
    return table(("", "found", "at most", ""), rows)


def _word(*, met: bool) -> str:
    return "met" if met else "missed"


if __name__ == "__main__":
    main()
