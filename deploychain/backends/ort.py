"""onnxruntime: run a model over arrays, in batches, and say what executed it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort

from deploychain.backends.ort_emulation import emulate_fp16, half_types
from deploychain.errors import ArtifactError, StageError
from deploychain.numerics.npz import misfit

__all__ = [
    "Arrays",
    "emulate_fp16",
    "open_session",
    "placement",
    "run_batches",
    "run_model",
    "session_options",
    "half_types",
]

Arrays = dict[str, npt.NDArray[Any]]
Source = Path | bytes | onnx.ModelProto

_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


def cuda_available() -> bool:
    """True when this onnxruntime has the CUDA provider (whether a GPU answers shows when a session is opened)."""
    return "CUDAExecutionProvider" in ort.get_available_providers()


def cuda_answers(model: Source) -> bool:
    """True when a session of this model really gets the CUDA provider (onnxruntime falls back to the CPU silently)."""
    return cuda_available() and "CUDAExecutionProvider" in open_session(model, cuda=True).get_providers()


def session_options() -> ort.SessionOptions:
    """The options of every session of the chain.

    ``session.disable_quant_qdq=1``: onnxruntime would fuse Q/DQ into integer kernels, which saturate on CPUs without
    VNNI (``MatMulIntegerToFloat``) and give INT8 accuracy that no TensorRT engine has. Unfused Q/DQ computes what the
    graph says. ``OMP_NUM_THREADS`` limits the threads, as it does for torch.
    """
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    options.log_severity_level = 4  # what fails is raised as well, and told by whoever ran it
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads) > 0:
        options.intra_op_num_threads = int(threads)
    return options


def open_session(
    model: Source, *, cuda: bool = False, options: ort.SessionOptions | None = None
) -> ort.InferenceSession:
    """Open a model on the CPU, or on the first GPU with TF32 off.

    Raises:
        ArtifactError: the file is no ONNX model, or onnxruntime refuses it; its message is kept.
    """
    where = str(model) if isinstance(model, Path) else ""
    source = str(model) if isinstance(model, Path) else model if isinstance(model, bytes) else model.SerializeToString()
    providers: list[Any] = ["CPUExecutionProvider"]
    if cuda:
        providers.insert(0, ("CUDAExecutionProvider", {"use_tf32": "0"}))
    try:
        return ort.InferenceSession(source, options or session_options(), providers=providers)
    except Exception as error:  # onnxruntime's exception classes share no base but Exception
        raise ArtifactError(f"onnxruntime cannot open the model: {_line(error)}", where=where) from None


def run_model(
    model: Source, inputs: Mapping[str, npt.NDArray[Any]], batch_size: int = 100, *, cuda: bool = False
) -> Arrays:
    """Run a model over all samples and return whole outputs.

    Args:
        model: a file, its bytes or the loaded model. FP16 on the CPU is *not* rounded here (see `emulate_fp16`).
        inputs: input name -> array; axis 0 counts samples. Floats are converted to the model's float type, integers
            to wider ones; integers for a float input are refused.
        batch_size: samples per run; a batch axis that the model fixes wins (the last batch is padded by repetition,
            the padding's outputs are dropped).
        cuda: use the CUDA provider.

    Returns:
        Output name -> array, batches joined on axis 0.

    Raises:
        ArtifactError: the model cannot be opened.
        StageError: inputs do not fit the model, a run fails, or an output has no sample axis to join on.
    """
    return run_batches(open_session(model, cuda=cuda), inputs, batch_size)


def run_batches(session: ort.InferenceSession, inputs: Mapping[str, npt.NDArray[Any]], batch_size: int) -> Arrays:
    """`run_model` on an open session."""
    pieces: dict[str, list[npt.NDArray[Any]]] = {}
    names = [o.name for o in session.get_outputs()]
    feeds = fitted_inputs(session, inputs)
    samples = _samples(session, feeds)
    count = 0
    for feed, size, padded in in_batches(session, feeds, batch_size):
        try:
            results = session.run(names, feed)
        except Exception as error:
            raise StageError(f"onnxruntime failed while running the model: {_line(error)}") from None
        count += 1
        for name, value in zip(names, results, strict=True):
            array = np.asarray(value)
            if array.ndim and array.shape[0] == padded:
                array = array[:size]
            pieces.setdefault(name, []).append(array)
    joined: Arrays = {}
    for name, arrays in pieces.items():
        if count == 1:
            joined[name] = arrays[0]
        elif any(a.ndim == 0 for a in arrays) or len({a.shape[1:] for a in arrays}) > 1:
            raise StageError(
                f"output {name!r} cannot be joined over batches: shapes {sorted({a.shape for a in arrays})}",
                remedy="its axis 0 must be the batch and its other axes the same for every batch",
            )
        else:
            joined[name] = np.concatenate(arrays)
        if count > 1 and joined[name].shape[0] != samples:
            raise StageError(f"output {name!r} has {joined[name].shape[0]} rows for {samples} samples")
    return joined


def placement(model: Source, inputs: Mapping[str, npt.NDArray[Any]], scratch: Path, *, cuda: bool) -> dict[str, int]:
    """How many nodes each execution provider really ran, read from onnxruntime's profile of one batch."""
    options = session_options()
    options.enable_profiling = True
    options.profile_file_prefix = str(scratch / "ort-profile")
    session = open_session(model, cuda=cuda, options=options)
    run_batches(session, inputs, batch_size=1 << 30)
    profile = Path(session.end_profiling())
    try:
        events = json.loads(profile.read_text(encoding="utf-8"))
    finally:
        profile.unlink(missing_ok=True)
    nodes = {
        (e["name"], e["args"]["provider"])
        for e in events
        if isinstance(e, dict) and e.get("cat") == "Node" and "provider" in e.get("args", {})
    }
    return dict(Counter(provider for _, provider in nodes))


def fitted_inputs(session: ort.InferenceSession, inputs: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """The arrays under the model's names, in the model's types."""
    wanted = session.get_inputs()
    missing = [i.name for i in wanted if i.name not in inputs]
    if missing:
        raise StageError(
            f"the model's inputs {', '.join(map(repr, missing))} are not in the data, "
            f"which has {', '.join(map(repr, inputs)) or 'nothing'}",
            remedy="name the arrays after the model's inputs",
        )
    fitted: Arrays = {}
    for info in wanted:
        array = np.asarray(inputs[info.name])
        dtype = _NUMPY.get(info.type)
        if dtype is None:
            raise StageError(f"input {info.name!r} is a {info.type}, which cannot be fed from arrays")
        remedy = misfit(info.name, array.dtype, np.dtype(dtype))
        if remedy:
            raise StageError(f"input {info.name!r} is {info.type}, the data are {array.dtype}", remedy=remedy)
        if len(info.shape) != array.ndim:
            raise StageError(f"input {info.name!r} has shape {info.shape}, the data {list(array.shape)}")
        fitted[info.name] = np.asarray(array, dtype=dtype, order="C")  # ascontiguousarray would make 0-d 1-d
    return fitted


def _samples(session: ort.InferenceSession, feeds: Arrays) -> int:
    first = session.get_inputs()[0].name
    return feeds[first].shape[0] if feeds[first].ndim else 1


def in_batches(session: ort.InferenceSession, feeds: Arrays, batch_size: int) -> Iterator[tuple[Arrays, int, int]]:
    """(feed, samples in it, rows fed): inputs with one row per sample are cut, others are passed whole."""
    samples = _samples(session, feeds)
    fixed = 0
    cut: list[str] = []
    for info in session.get_inputs():
        array = feeds[info.name]
        rows = info.shape[0] if info.shape else None
        if isinstance(rows, int) and rows != samples and list(array.shape) == list(info.shape):
            continue
        if array.ndim == 0:
            continue
        if array.shape[0] != samples:
            raise StageError(f"input {info.name!r} has {array.shape[0]} rows, the first input {samples}")
        cut.append(info.name)
        if isinstance(rows, int):
            fixed = rows
    size = fixed or batch_size
    for start in range(0, samples, size):
        feed = {n: (a[start : start + size] if n in cut else a) for n, a in feeds.items()}
        actual = min(size, samples - start)
        padded = fixed or actual
        if padded > actual:
            fill = [*range(actual), *([actual - 1] * (padded - actual))]
            feed = {n: (a[fill] if n in cut else a) for n, a in feed.items()}
        yield feed, actual, padded


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:600]
