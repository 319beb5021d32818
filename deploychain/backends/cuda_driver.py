"""Device memory, a stream and events through NVIDIA's driver library, with nothing but ctypes.

A Jetson image has no torch and need not have a CUDA Python package; ``libcuda.so.1`` comes with every driver. The
primary context is used, so pointers and streams fit what TensorRT uses in the same process.
"""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import CapabilityError, StageError

Array = npt.NDArray[Any]
_OUT_OF_MEMORY = 2


class Cuda:
    """The first GPU. Use as a context manager: what was allocated is freed at the end.

    Raises:
        CapabilityError: there is no driver or no GPU.
    """

    def __init__(self) -> None:
        try:
            self._lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CapabilityError(
                f"the NVIDIA driver library is missing: {error}",
                remedy="run on a machine with a GPU; in a container, start it with --runtime nvidia",
            ) from None
        self._pointers: list[int] = []
        self._call("cuInit", 0)
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._device = device.value
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(stream), 1)  # non-blocking: independent of the default stream
        self.stream = int(stream.value or 0)

    def __enter__(self) -> Cuda:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()

    def allocate(self, size: int) -> int:
        """Device memory of ``size`` bytes; its address."""
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self._pointers.append(pointer.value)
        return pointer.value

    def free(self) -> None:
        for pointer in self._pointers:
            self._lib.cuMemFree_v2(ctypes.c_uint64(pointer))
        self._pointers.clear()

    def to_device(self, array: Array, pointer: int) -> None:
        data = np.ascontiguousarray(array)
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data.ctypes.data_as(ctypes.c_void_p), data.nbytes)

    def to_host(self, pointer: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        array = np.empty(shape, dtype)
        self._call("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(pointer), array.nbytes)
        return array

    def synchronise(self) -> None:
        self._call("cuStreamSynchronize", ctypes.c_void_p(self.stream))

    def event(self) -> int:
        handle = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(handle), 0)
        return int(handle.value or 0)

    def record(self, event: int) -> None:
        self._call("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(self.stream))

    def elapsed_ms(self, start: int, end: int) -> float:
        """Time between two recorded events, milliseconds; waits for the second."""
        self._call("cuEventSynchronize", ctypes.c_void_p(end))
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), ctypes.c_void_p(start), ctypes.c_void_p(end))
        return float(milliseconds.value)

    def compute_capability(self) -> str:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(major), 75, self._device)
        self._call("cuDeviceGetAttribute", ctypes.byref(minor), 76, self._device)
        return f"{major.value}.{minor.value}"

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._lib, name)(*arguments)
        if code == 0:
            return
        words = ctypes.c_char_p()
        self._lib.cuGetErrorString(code, ctypes.byref(words))
        text = words.value.decode() if words.value else f"error {code}"
        if code == _OUT_OF_MEMORY:
            raise StageError(f"the GPU's memory ran out ({name})", remedy="close other programs, or lower the batch")
        if name in ("cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"):
            raise CapabilityError(
                f"no GPU answers: {text}",
                remedy="in a container, start it with --runtime nvidia; see `deploychain doctor`",
            )
        raise StageError(f"CUDA: {name}: {text}")
