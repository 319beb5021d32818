"""Run a torch model over arrays: eager FP32, or under autocast."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from deploychain.backends.torch_data import outputs_to_dict
from deploychain.backends.torch_device import describe_device
from deploychain.errors import StageError

Arrays = dict[str, npt.NDArray[Any]]
_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def run_torch(
    model: nn.Module,
    inputs: Mapping[str, npt.NDArray[Any]],
    batch_size: int,
    *,
    device: str = "cpu",
    autocast: Literal["fp16", "bf16"] | None = None,
) -> Arrays:
    """Run a model in eval mode over all samples, without TF32 and with deterministic cuDNN kernels.

    Args:
        model: FP32; it is moved to the device.
        inputs: argument name -> array; axis 0 counts samples.
        autocast: the dtype of `torch.autocast` on that device.

    Returns:
        Output name -> array, floats as float32.

    Raises:
        StageError: an output has no sample axis.
    """
    model = model.to(device).eval()
    samples = len(next(iter(inputs.values())))
    pieces: dict[str, list[npt.NDArray[Any]]] = {}
    dtype = _DTYPES[autocast] if autocast else None
    with torch.inference_mode(), _full_fp32(), torch.autocast(device, dtype=dtype, enabled=autocast is not None):
        for start in range(0, samples, batch_size):
            batch = {n: torch.from_numpy(a[start : start + batch_size]).to(device) for n, a in inputs.items()}
            rows = min(batch_size, samples - start)
            for name, tensor in outputs_to_dict(_call(model, batch)).items():
                if tensor.ndim == 0 or tensor.shape[0] != rows:
                    raise StageError(
                        f"output {name!r} has shape {list(tensor.shape)} for a batch of {rows} samples",
                        where="model",
                        remedy="axis 0 of every output must be the batch",
                    )
                pieces.setdefault(name, []).append(_to_numpy(tensor))
    return {name: np.concatenate(arrays) for name, arrays in pieces.items()}


def describe(device: str, autocast: str | None) -> str:
    """What `run_torch` executes, in the words of the table."""
    if device == "cpu":
        if autocast is None:
            return "torch eager FP32, CPU"
        return f"torch CPU autocast {autocast}: its operator lists and kernels are not those of CUDA autocast"
    gpu = describe_device(torch.device(device))
    return f"torch eager FP32 (TF32 off), {gpu}" if autocast is None else f"torch CUDA autocast {autocast}, {gpu}"


def _call(model: nn.Module, batch: Mapping[str, torch.Tensor]) -> Any:
    parameters = inspect.signature(model.forward).parameters
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if all(n in parameters and parameters[n].kind in named for n in batch):
        return model(**batch)
    return model(*batch.values())


def _to_numpy(tensor: torch.Tensor) -> npt.NDArray[Any]:
    if tensor.is_floating_point():
        tensor = tensor.to(torch.float32)
    return tensor.cpu().numpy()


@contextmanager
def _full_fp32() -> Iterator[None]:
    """TF32 off (cuDNN allows it by default) and no choice of kernels by timing, so that runs can be repeated."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (cudnn.allow_tf32, matmul.allow_tf32, cudnn.deterministic, cudnn.benchmark)
    cudnn.allow_tf32, matmul.allow_tf32, cudnn.deterministic, cudnn.benchmark = False, False, True, False
    try:
        yield
    finally:
        cudnn.allow_tf32, matmul.allow_tf32, cudnn.deterministic, cudnn.benchmark = before
