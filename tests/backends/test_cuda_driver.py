"""Device memory through the driver library alone, on a real GPU."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from deploychain.backends.cuda_driver import Cuda
from deploychain.errors import CapabilityError, StageError
from deploychain.machine import look

pytestmark = pytest.mark.gpu


@pytest.fixture
def cuda() -> Cuda:
    try:
        return Cuda()
    except CapabilityError as error:
        pytest.skip(f"no NVIDIA GPU: {error.message}")


def test_arrays_come_back_as_they_went(cuda: Cuda) -> None:
    with cuda:
        for array in (
            np.random.default_rng(0).standard_normal((64, 3, 32, 32)).astype(np.float32),
            np.arange(1000, dtype=np.int64),
            np.array([], dtype=np.float16),
            np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4)),
        ):
            address = cuda.allocate(array.nbytes)
            cuda.to_device(array, address)
            np.testing.assert_array_equal(cuda.to_host(address, array.shape, array.dtype), array)


def test_events_measure_the_stream(cuda: Cuda) -> None:
    with cuda:
        start, end = cuda.event(), cuda.event()
        cuda.record(start)
        cuda.record(end)
        cuda.synchronise()
        assert 0.0 <= cuda.elapsed_ms(start, end) < 1000.0


def test_no_memory_is_told_as_such(cuda: Cuda) -> None:
    with cuda, pytest.raises(StageError, match="memory ran out"):
        cuda.allocate(1 << 45)


def test_the_capability_is_that_of_nvidia_smi(cuda: Cuda) -> None:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no nvidia-smi")
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    told = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    assert cuda.compute_capability() == told
    assert look().gpus[0].compute_capability == told
