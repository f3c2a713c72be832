"""Names of runtime and driver calls and what they do."""

import pytest

from perfdiag.trace_schemas.apis import API_ROLES, classify_api

ROLES = {
    "launch": [
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaLaunchCooperativeKernel",
        "cudaLaunchCooperativeKernelMultiDevice",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuLaunchCooperativeKernel",
        "hipLaunchKernel",
        "hipLaunchKernelExC",
        "hipModuleLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipExtLaunchKernel",
        "hipLaunchCooperativeKernel",
        "urEnqueueKernelLaunch",
        "urEnqueueKernelLaunchWithArgsExp",
        "urEnqueueCooperativeKernelLaunchExp",
        "zeCommandListAppendLaunchKernel",
        "zeCommandListAppendLaunchCooperativeKernel",
        "aclrtLaunchKernel",
        "synLaunch",
        "runFunction - job_prep_and_submit_for_execution",
    ],
    "graph_launch": ["cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"],
    "sync": [
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize",
        "cudaEventSynchronize",
        "cuCtxSynchronize",
        "cuStreamSynchronize",
        "hipDeviceSynchronize",
        "hipStreamSynchronize",
        "hipEventSynchronize",
        "cudaMemcpy",
        "cudaMemcpy2D",
        "cuMemcpyDtoH",
        "hipMemcpy",
        "hipMemcpyWithStream",
        "hipMemcpyDtoH",
        "urQueueFinish",
        "urEventWait",
        "zeCommandQueueSynchronize",
        "zeEventHostSynchronize",
        "aclrtSynchronizeStream",
        "synchronizeStream",
        "synchronize",
    ],
    "copy": [
        "cudaMemcpyAsync",
        "cudaMemcpy2DAsync",
        "cudaMemcpyPeerAsync",
        "cuMemcpyHtoDAsync",
        "hipMemcpyAsync",
        "hipMemcpyDtoHAsync",
        "urEnqueueUSMMemcpy",
        "zeCommandListAppendMemoryCopy",
        "aclrtMemcpyAsync",
        "enqueueCommand memcpyHtoDAsync",
    ],
    "fill": [
        "cudaMemsetAsync",
        "cuMemsetD8Async",
        "hipMemsetAsync",
        "urEnqueueUSMFill",
        "zeCommandListAppendMemoryFill",
    ],
    "event": [
        "cudaEventRecord",
        "cudaEventRecordWithFlags",
        "cudaEventQuery",
        "cudaStreamWaitEvent",
        "cuStreamWaitEvent",
        "hipStreamWaitEvent",
        "hipEventDestroy",
        "recordEvent",
        "enqueueCommand waitOnEvent",
    ],
    "alloc": [
        "cudaMalloc",
        "cudaMallocAsync",
        "cudaFree",
        "cudaHostAlloc",
        "cuMemAlloc",
        "cuMemCreate",
        "hipMalloc",
        "hipHostMalloc",
        "hipFree",
        "urUSMDeviceAlloc",
    ],
    "load": [
        "cuModuleLoadData",
        "cuModuleLoadDataEx",
        "cuLibraryLoadData",
        "cuModuleGetFunction",
        "cudaLibraryLoadData",
        "cuLinkComplete",
        "hipModuleLoad",
        "hipModuleLoadDataEx",
        "zeModuleCreate",
    ],
    "other": [
        "cudaStreamIsCapturing",
        "cudaFuncSetAttribute",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        "cudaLaunchHostFunc",
        "cudaHostGetDevicePointer",
        "cudaStreamGetCaptureInfo_v2",
        "hipGetDevicePropertiesR0600",
        "hipPointerGetAttribute",
        "zeCommandQueueExecuteCommandLists",
        "gif_merge",
        "INVALID",
        "aten::mm",
        "",
    ],
}


@pytest.mark.parametrize(("role", "name"), [(r, n) for r, names in ROLES.items() for n in names])
def test_calls_of_every_vendor_have_their_role(role: str, name: str) -> None:
    """A call of any vendor's runtime or driver is told by its whole name."""
    assert classify_api(name) == role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("cudaLaunchKernel_v7000", "launch"),
        ("cudaLaunchKernelExC_v11060", "launch"),
        ("cudaMemcpyAsync_ptsz", "copy"),
        ("cuStreamSynchronize_ptsz", "sync"),
        ("cudaMemcpy_ptds", "sync"),
        ("cuMemAlloc_v2", "alloc"),
        ("cudaStreamSynchronize_v3020", "sync"),
        ("cudaStreamGetCaptureInfo_v2_v11030", "other"),
        ("AscendCL@aclrtSynchronizeStream", "sync"),
    ],
)
def test_what_profilers_add_to_a_name_changes_nothing(name: str, role: str) -> None:
    """Version and stream suffixes and the layer's prefix are taken off first."""
    assert classify_api(name) == role


def test_every_role_is_declared() -> None:
    """The roles of the table are those that callers are told about."""
    assert set(ROLES) == set(API_ROLES)
