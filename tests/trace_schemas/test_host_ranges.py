"""Names of host ranges: activities and step markers."""

import pytest

from perfdiag.trace_schemas.host_ranges import (
    ACTIVITIES,
    STEP_RULES,
    StepMarker,
    classify_range,
    step_marker,
)

RANGES = {
    "input": [
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "torch/utils/data/dataloader.py(703): __next__",
        "/usr/lib/python3/dist-packages/torch/utils/data/_utils/fetch.py(25): fetch",
        "[pl][profile][_TrainingEpochLoop].train_dataloader_next",
        "IteratorGetNext",
        "Iterator::Prefetch",
        "infeed.3",
        "webdataset/tariterators.py(12): url_opener",
        "## load_batch ##",
        "## copy_batch_to_gpu 3 ##",
        "data_loading",
        "train.py(31): get_batch",
    ],
    "compile": [
        "_compile.compile_inner (dynamo_timed)",
        "gc (dynamo_timed)",
        "entire_frame_compile",
        "torch/_dynamo/convert_frame.py(1020): _compile",
        "torch/_inductor/compile_fx.py(612): compile_fx_inner",
        "triton/compiler/compiler.py(226): compile",
        "$compiler.py:310 backend_compile",
    ],
    "gc": [
        "gc: collect",
        "gc.collect",
        "Python GC",
        "<built-in function collect>",
        "garbage_collect",
    ],
    "checkpoint": [
        "torch.save",
        "torch/serialization.py(619): save",
        "torch/distributed/checkpoint/state_dict_saver.py(80): save",
        "train.py(40): save_checkpoint",
        "save_model_checkpoint",
        "Checkpointer.save",
        "dcp.async_save",
        "## checkpoint ##",
    ],
    "logging": [
        "torch/utils/tensorboard/writer.py(355): add_scalar",
        "SummaryWriter.add_scalar",
        "wandb.log",
        "train.py(88): log_metrics",
        "<built-in function print>",
        "logging/__init__.py(1477): info",
        "## metrics:publish ##",
    ],
    "optimizer": [
        "Optimizer.step#AdamW.step",
        "Optimizer.zero_grad#SGD.zero_grad",
        "torch/optim/adamw.py(220): step",
        "optimizer",
        "## optimizer ##",
        "[pl][profile][LightningModule]Net.optimizer_step",
    ],
    "forward": [
        "DistributedDataParallel.forward",
        "FullyShardedDataParallel.forward",
        "FSDP::pre_forward (layers.0)",
        "forward",
        "## forward:over_arch ##",
        "forward-compute",
    ],
    "backward": [
        "autograd::engine::evaluate_function: AddmmBackward0",
        "autograd::engine::evaluate_function: CheckpointFunctionBackward",
        "torch::autograd::AccumulateGrad",
        "AddmmBackward0",
        "loss.backward()",
        "backward",
        "FSDP::post_backward (layers.0)",
        "torch/_tensor.py(595): backward",
        "[pl][profile][Strategy]DDPStrategy.backward",
    ],
    "profiler_overhead": [
        "Buffer Flush",
        "Instrumentation",
        "Resource",
        "Activity Buffer Request",
        "ACTIVITY_BUFFER_REQUEST",
        "torch/profiler/profiler.py(811): step",
    ],
    "module_loading": [
        "Lazy Function Loading",
        "Driver Compiler",
        "Runtime Triggered Module Loading",
    ],
    "queue_full": ["Command Buffer Full"],
    "": [
        "aten::mm",
        "CheckpointFunction",
        "torch/utils/checkpoint.py(451): checkpoint",
        "nn.Module: CheckpointWrapper_3",
        "nn.Module: Linear_0",
        "ProfilerStep#3",
        "train.py(12): step",
        "dataclasses.py(1278): fields",
        "logging/__init__.py(1517): debug",
        "vllm/model_executor/layers/logits_processor.py(54): forward_native",
        "aten::logsumexp",
        "nccl:all_reduce",
        "",
    ],
}


@pytest.mark.parametrize(
    ("activity", "name"), [(a, n) for a, names in RANGES.items() for n in names]
)
def test_ranges_tell_what_the_host_does(activity: str, name: str) -> None:
    """Annotations, operators and frames are told by name; what is no rule's stays ''."""
    assert classify_range(name) == activity


def test_every_activity_is_declared() -> None:
    """The activities of the table are those that callers are told about."""
    assert set(RANGES) == {*ACTIVITIES, ""}


@pytest.mark.parametrize(
    ("name", "marker"),
    [
        ("ProfilerStep#12", StepMarker("PyTorch profiler", "ProfilerStep#", 12)),
        ("train 12", StepMarker("JAX and TensorFlow", "train ", 12)),
        ("step[DECODE bs=64]", StepMarker("SGLang", "step[DECODE]", None)),
        ("step[EXTEND bs=16 toks=16384]", StepMarker("SGLang", "step[EXTEND]", None)),
        (
            "execute_context_1(888_788544)_generation_0(0)",
            StepMarker("vLLM", "execute context", None),
        ),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
            StepMarker("vLLM", "execute generation", None),
        ),
        (
            "execute_8192_context_9(sq8155)_generation_37(sq37)",
            StepMarker("vLLM", "execute context and generation", None),
        ),
        ("execute_new_0_cached_64", StepMarker("vLLM", "execute generation", None)),
        (
            "[Executor] _forward_step 7: 0 ctx reqs, 0 ctx tokens, 32 gen reqs",
            StepMarker("TensorRT-LLM", "[Executor] _forward_step generation", 7),
        ),
        (
            "[pl][profile]run_training_batch",
            StepMarker("PyTorch Lightning", "run_training_batch", None),
        ),
        ("Step 12", StepMarker("numbered", "Step ", 12)),
        ("iteration_3", StepMarker("numbered", "iteration_", 3)),
        ("iter 3/100", StepMarker("numbered", "iter /100", 3)),
        ("train_step", StepMarker("named", "train_step", None)),
        ("training_step", StepMarker("named", "training_step", None)),
    ],
)
def test_step_markers_give_their_family_and_number(name: str, marker: StepMarker) -> None:
    """Each convention is told by the whole name, and its number is cut out of the family."""
    assert step_marker(name) == marker


@pytest.mark.parametrize(
    "name",
    [
        "sample_0/aten::mm",
        "ProfilerStep#12/aten::mm",
        "my ProfilerStep#12",
        "ProfilerStep#",
        "Iteration Start: PyTorch Profiler",
        "torch/profiler/profiler.py(750): step",
        "Optimizer.step#AdamW.step",
        "train.py(82): train_step",
        "layer 12",
        "step",
        "step[3]",
        "dhen_layer_12",
        "12",
        "",
    ],
)
def test_a_name_that_only_holds_a_marker_is_no_step(name: str) -> None:
    """Markers match whole names: a part of a longer name marks nothing."""
    assert step_marker(name) is None


def test_steps_of_one_kind_share_a_family() -> None:
    """Decode steps of different batch sizes are one family, prefill steps another."""
    decode = {step_marker(f"step[DECODE bs={size}]") for size in (1, 8, 64)}
    extend = step_marker("step[EXTEND bs=8 toks=4096]")
    assert len(decode) == 1
    assert extend not in decode


def test_the_most_trusted_convention_comes_first() -> None:
    """The profiler's own markers go before names that only look like steps."""
    assert STEP_RULES[0] == "PyTorch profiler"
    assert STEP_RULES[-1] == "named"
