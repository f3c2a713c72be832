"""How HolisticTraceAnalysis at f4d0062 knows kernels: by the beginnings of their names.

`hta/utils/utils.py`: communication is `^nccl|^hip|^hccl|.*ncclKernel`, so every kernel that begins
with "hip" is, and communication by DeepEP, NVSHMEM, oneCCL or one's own kernels is computation;
memory is `^Memcpy|^Memset|^dma`.
"""

import re

__all__ = ["COMMUNICATION", "MEMORY"]

COMMUNICATION = re.compile(r"nccl|hip|hccl|.*ncclKernel")
MEMORY = re.compile(r"Memcpy|Memset|dma")
