"""Run an engine in a process of its own: ``python -m deploychain.backends.tensorrt_runner REQUEST.json``.

Golden data through the engine, its layers as the inspector lists them, the time of whole inferences by CUDA events,
and the time of each layer by the library's profiler. NumPy and ctypes only; both flavours of the library (8.6 and
later) share the calls.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deploychain.backends.cuda_driver import Cuda
from deploychain.errors import CapabilityError, DeploychainError, StageError

if TYPE_CHECKING:
    import tensorrt as trt  # mypy checks against the stubs of TensorRT 10 where they are installed

Arrays = dict[str, npt.NDArray[Any]]


def main(argv: Sequence[str]) -> int:
    request = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    try:
        result: dict[str, Any] = {"ok": True, **_run(request)}
    except DeploychainError as error:
        result = {"ok": False, "error": error.to_dict()}
    target = Path(request["result"])
    temporary = target.with_suffix(".tmp")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(target)
    return 0


def _run(request: Mapping[str, Any]) -> dict[str, Any]:
    globals()["trt"] = importlib.import_module(request["flavour"])  # one library per process
    with Cuda() as cuda:
        engine = _Engine(Path(request["engine"]), cuda)
        result: dict[str, Any] = {"inputs": engine.inputs, "outputs": engine.outputs}
        if request.get("layers"):
            Path(request["layers"]).write_text(engine.layers(), encoding="utf-8")
        if request.get("data"):
            with np.load(request["data"], allow_pickle=False) as archive:
                data = {name: archive[name] for name in archive.files}
            made = engine.run_batches(data, int(request["low"]), int(request["high"]))
            np.savez(request["made"], allow_pickle=False, **made)
        if request.get("times"):
            shapes = {name: tuple(shape) for name, shape in request["shapes"].items()}
            times = engine.time(
                shapes, float(request["warm_up_ms"]), float(request["seconds"]), int(request["iterations"])
            )
            Path(request["times"]).write_text(json.dumps(times), encoding="utf-8")
            Path(request["profile"]).write_text(json.dumps(engine.profile(20)), encoding="utf-8")
        return result


class _Engine:
    """A deserialised engine with one context on profile 0."""

    def __init__(self, path: Path, cuda: Cuda) -> None:
        self._cuda = cuda
        self._log = _make_logger()
        if hasattr(trt, "init_libnvinfer_plugins"):
            trt.init_libnvinfer_plugins(self._log, "")
        self._runtime = trt.Runtime(self._log)
        self._engine = self._runtime.deserialize_cuda_engine(path.read_bytes())
        if self._engine is None:
            raise CapabilityError(f"the engine cannot be loaded: {self._why()}", where=str(path))
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise StageError(f"no execution context: {self._why()}", where=str(path))
        names = [self._engine.get_tensor_name(i) for i in range(self._engine.num_io_tensors)]
        self.inputs = [n for n in names if self._engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
        self.outputs = [n for n in names if n not in self.inputs]
        self._held: dict[str, tuple[int, int]] = {}  # tensor -> address, bytes

    def layers(self) -> str:
        """The inspector's JSON, with a context so that formats are spelled out."""
        inspector = self._engine.create_engine_inspector()
        inspector.execution_context = self._context
        return str(inspector.get_engine_information(trt.LayerInformationFormat.JSON))

    def run_batches(self, data: Arrays, low: int, high: int) -> Arrays:
        """All samples (axis 0), in batches of at most ``high``; one below ``low`` is padded by repetition."""
        samples = len(next(iter(data.values())))
        pieces: dict[str, list[npt.NDArray[Any]]] = {n: [] for n in self.outputs}
        for start in range(0, samples, high):
            rows = np.arange(start, min(start + high, samples))
            padded = np.concatenate([rows, np.full(max(0, low - len(rows)), rows[-1])])
            self._bind({n: data[n][padded] for n in self.inputs})
            self._execute()
            self._cuda.synchronise()
            for name, array in self._fetch().items():
                pieces[name].append(array[: len(rows)])
        return {name: np.concatenate(arrays) for name, arrays in pieces.items()}

    def time(
        self, shapes: Mapping[str, tuple[int, ...]], warm_up_ms: float, seconds: float, iterations: int
    ) -> list[dict[str, float]]:
        """GPU time of single inferences, in the form of trtexec's ``--exportTimes``."""
        generator = np.random.default_rng(0)
        feed = {}
        for name in self.inputs:
            shape = shapes.get(name) or _sizes(self._engine.get_tensor_shape(name))
            feed[name] = generator.random(shape).astype(self._dtype(name))
        self._bind(feed)
        until = time.monotonic() + warm_up_ms / 1000
        while time.monotonic() < until:
            self._execute()
            self._cuda.synchronise()
        start, end = self._cuda.event(), self._cuda.event()
        times: list[dict[str, float]] = []
        until = time.monotonic() + seconds
        while len(times) < iterations or time.monotonic() < until:
            self._cuda.record(start)
            self._execute()
            self._cuda.record(end)
            times.append({"computeMs": self._cuda.elapsed_ms(start, end)})
        return times

    def profile(self, iterations: int) -> list[dict[str, Any]]:
        """Mean time of each layer, in the form of trtexec's ``--exportProfile``; tensors are bound already."""
        rows: list[tuple[str, float]] = []

        class Profiler(trt.IProfiler):  # type: ignore[misc, unused-ignore]
            def __init__(self) -> None:
                trt.IProfiler.__init__(self)

            def report_layer_time(self, layer_name: str, ms: float) -> None:
                rows.append((layer_name, ms))

        self._context.profiler = profiler = Profiler()
        for _ in range(iterations):
            self._execute()
            self._cuda.synchronise()
        del profiler
        per_run = max(1, len(rows) // iterations)
        names = [name for name, _ in rows[:per_run]]
        totals = [sum(ms for _, ms in rows[i::per_run]) for i in range(per_run)]
        whole = sum(totals) or 1.0
        table = [
            {"name": n, "timeMs": t, "averageMs": t / iterations, "percentage": 100 * t / whole}
            for n, t in zip(names, totals, strict=True)
        ]
        return [{"count": iterations}, *table]

    def _bind(self, feed: Arrays) -> None:
        for name, array in feed.items():
            typed = array.astype(self._dtype(name), copy=False)
            if not self._context.set_input_shape(name, tuple(typed.shape)):
                raise StageError(f"input {name!r}: shape {list(typed.shape)} is outside the engine's profile")
            self._cuda.to_device(typed, self._memory(name, typed.nbytes))
        for name in self.outputs:
            shape = _sizes(self._context.get_tensor_shape(name))
            if any(size < 0 for size in shape):
                raise StageError(f"output {name!r} has a size that depends on the values")
            self._memory(name, int(np.prod(shape, dtype=np.int64)) * self._dtype(name).itemsize)

    def _memory(self, name: str, size: int) -> int:
        address, held = self._held.get(name, (0, -1))
        if held < size:
            address = self._cuda.allocate(size)
            self._held[name] = (address, size)
        self._context.set_tensor_address(name, address)
        return address

    def _execute(self) -> None:
        if not self._context.execute_async_v3(self._cuda.stream):
            raise StageError(f"the engine does not run: {self._why()}")

    def _fetch(self) -> Arrays:
        made: Arrays = {}
        for name in self.outputs:
            shape = _sizes(self._context.get_tensor_shape(name))
            array = self._cuda.to_host(self._held[name][0], shape, self._dtype(name))
            made[name] = array.astype(np.float32) if array.dtype == np.float16 else array
        return made

    def _dtype(self, name: str) -> np.dtype[Any]:
        kind = self._engine.get_tensor_dtype(name).name
        table = {"FLOAT": "f4", "HALF": "f2", "INT8": "i1", "INT32": "i4", "INT64": "i8", "UINT8": "u1", "BOOL": "?"}
        if kind not in table:
            raise StageError(f"tensor {name!r} has type {kind}, which NumPy does not have")
        return np.dtype(table[kind])

    def _why(self) -> str:
        said = [text for severity, text in self._log.rows if severity in ("INTERNAL_ERROR", "ERROR")]
        return " ".join(said[0].split()) if said else "the library gave no reason"


def _sizes(dims: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in dims)  # trt.Dims is a sequence, which its stub does not say


def _make_logger() -> Any:
    class Log(trt.ILogger):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.rows: list[tuple[str, str]] = []

        def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
            self.rows.append((severity.name, msg))

    return Log()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
