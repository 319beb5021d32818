"""Run a built engine over arrays: TensorRT (10 and 11) or TensorRT for RTX, with torch holding the device memory.

Both flavours have the same execution interface: one context, named tensors, `execute_async_v3` on a stream. Without
a GPU that the library accepts, `CapabilityError` carries the library's own words.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.environment import gpu_name
from deploychain.errors import CapabilityError, StageError

Arrays = dict[str, npt.NDArray[Any]]
_CUDA_ERROR = re.compile(r"\((cudaError (\d+): [^()]+)\)")
_NO_GPU = ("35", "100")  # cudaErrorInsufficientDriver (no driver at all, too), cudaErrorNoDevice


class Engine:
    """A deserialised engine with one execution context on profile 0.

    Args:
        path: the engine file.
        flavour: the package that built it, ``tensorrt`` or ``tensorrt_rtx``.

    Raises:
        CapabilityError: the package is missing, or it does not accept this engine on this machine.
    """

    def __init__(self, path: Path, flavour: str) -> None:
        if importlib.util.find_spec(flavour) is None:
            raise CapabilityError(f"the Python package {flavour} is not installed")
        self._trt = trt = importlib.import_module(flavour)
        self.name = f"{flavour} {trt.__version__}"
        self._log = _make_logger(trt)
        try:
            runtime = trt.Runtime(self._log)
            engine = runtime.deserialize_cuda_engine(path.read_bytes())
        except Exception as error:  # the bindings raise their own types
            raise CapabilityError(f"{self.name} cannot load the engine: {self._why(error)}") from None
        if engine is None:
            raise CapabilityError(f"{self.name} cannot load the engine: {self._why()}")
        self._runtime, self._engine = runtime, engine
        self._context = engine.create_execution_context()
        if self._context is None:
            raise CapabilityError(f"{self.name} cannot make an execution context: {self._why()}")
        names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
        inputs = {n for n in names if engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT}
        self.inputs = [n for n in names if n in inputs]
        self.outputs = [n for n in names if n not in inputs]

    @property
    def device_name(self) -> str:
        """The GPU that it runs on."""
        import torch

        return torch.cuda.get_device_name()

    def run(self, inputs: Mapping[str, npt.NDArray[Any]], batch_size: int) -> Arrays:
        """Run all samples (axis 0 of every input), in batches that the optimisation profile allows.

        A last batch below the profile's minimum is padded by repetition, and the padding's outputs are dropped.

        Raises:
            StageError: an input is missing, a shape lies outside the profile, or the execution fails.
        """
        missing = [n for n in self.inputs if n not in inputs]
        if missing:
            raise StageError(f"the engine's input {missing[0]!r} is not in the data ({', '.join(inputs)})")
        profiles = [self._engine.get_tensor_profile_shape(n, 0) for n in self.inputs]
        low, high = batch_range([(int(least[0]), int(most[0])) for least, _, most in profiles], batch_size)
        pieces: dict[str, list[npt.NDArray[Any]]] = {n: [] for n in self.outputs}
        for rows, count in padded_batches(len(inputs[self.inputs[0]]), low, high):
            for name, array in self._execute({n: inputs[n][rows] for n in self.inputs}).items():
                pieces[name].append(array[:count])
        return {name: np.concatenate(arrays) for name, arrays in pieces.items()}

    def _execute(self, feed: Mapping[str, npt.NDArray[Any]]) -> Arrays:
        import torch

        held: dict[str, torch.Tensor] = {}
        for name, array in feed.items():
            dtype = _torch_dtype(torch, self._engine.get_tensor_dtype(name))
            held[name] = torch.from_numpy(np.ascontiguousarray(array)).to("cuda", dtype)
            if not self._context.set_input_shape(name, tuple(array.shape)):
                least, _, most = self._engine.get_tensor_profile_shape(name, 0)
                raise StageError(f"input {name!r}: shape {list(array.shape)} is outside {list(least)}..{list(most)}")
        for name in self.outputs:
            shape: Sequence[int] = tuple(self._context.get_tensor_shape(name))
            if any(d < 0 for d in shape):
                raise StageError(f"output {name!r} has a size that depends on the values ({list(shape)})")
            dtype = _torch_dtype(torch, self._engine.get_tensor_dtype(name))
            held[name] = torch.empty(tuple(shape), dtype=dtype, device="cuda")
        for name, tensor in held.items():
            self._context.set_tensor_address(name, tensor.data_ptr())
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        if not self._context.execute_async_v3(stream.cuda_stream):
            raise StageError(f"{self.name} failed while running the engine: {self._why()}")
        stream.synchronize()
        made = {n: held[n] for n in self.outputs}
        return {n: (t.float() if t.is_floating_point() else t).cpu().numpy() for n, t in made.items()}

    def _why(self, error: Exception | None = None) -> str:
        """The library's first error message; the others follow from it."""
        said = [text for severity, text in self._log.rows if severity in ("INTERNAL_ERROR", "ERROR")]
        text = " ".join((said[0] if said else str(error) if error is not None else "it gave no reason").split())
        cuda = _CUDA_ERROR.search(text)  # the rest of such a message names the library's source files
        if cuda is None:
            return text
        return f"{cuda[1]} (this machine has no NVIDIA GPU)" if cuda[2] in _NO_GPU and gpu_name() is None else cuda[1]


def batch_range(profile: Sequence[tuple[int, int]], batch_size: int) -> tuple[int, int]:
    """The smallest batch of a profile, given as (min, max) per input, and the largest one up to ``batch_size``."""
    low = max(least for least, _ in profile)
    return low, max(low, min(batch_size, *(most for _, most in profile)))


def padded_batches(samples: int, low: int, high: int) -> Iterator[tuple[npt.NDArray[np.intp], int]]:
    """Row indices of each batch of ``low`` to ``high`` samples, and how many of them are not padding."""
    for start in range(0, samples, high):
        rows = np.arange(start, min(start + high, samples))
        yield np.concatenate([rows, np.full(max(0, low - len(rows)), rows[-1])]), len(rows)


def _make_logger(trt: Any) -> Any:
    class Log(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.rows: list[tuple[str, str]] = []

        def log(self, severity: Any, text: str) -> None:
            self.rows.append((severity.name, text))

    return Log()


def _torch_dtype(torch: Any, dtype: Any) -> Any:
    table = {
        "FLOAT": torch.float32,
        "HALF": torch.float16,
        "BF16": torch.bfloat16,
        "INT8": torch.int8,
        "INT32": torch.int32,
        "INT64": torch.int64,
        "UINT8": torch.uint8,
        "BOOL": torch.bool,
    }
    found = table.get(dtype.name)
    if found is None:
        raise StageError(f"an engine tensor of type {dtype.name} cannot be fed from arrays")
    return found
