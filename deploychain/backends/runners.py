"""Run any artefact of the chain over the same arrays, and say what executed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from deploychain.errors import StageError
from deploychain.task import Task

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Run:
    """Outputs by name (axis 0 counts samples), and how they were obtained."""

    outputs: Arrays
    how: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Runner:
    """The test inputs, and the device that everything runs on.

    Each method runs one kind of artefact and raises a `DeploychainError` when this machine or the artefact does not
    allow it. Frameworks are imported by the method that needs them: an ONNX file needs no torch.
    """

    inputs: Arrays
    batch_size: int
    device: str  # cpu or cuda
    scratch: Path
    task: Task | None = None

    def checkpoint(self, path: Path, autocast: Literal["fp16", "bf16"] | None = None) -> Run:
        from deploychain.backends.torch_model import model_from_checkpoint

        return self._torch(model_from_checkpoint(self._need_task(), path), autocast)

    def weights(self, path: Path) -> Run:
        from deploychain.backends.torch_model import build_model

        return self._torch(build_model(self._need_task(), path))

    def quantised(self, weights: Path, quantizers: Path) -> Run:
        from deploychain.backends.torch_qat import load_quantised

        run = self._torch(load_quantised(self._need_task(), weights, quantizers))
        return Run(run.outputs, f"{run.how}, fake-quantised", run.notes)

    def onnx(self, path: Path) -> Run:
        """Run an ONNX model; where no GPU computes FP16, its rounding is emulated, never left out."""
        import onnxruntime

        from deploychain.backends import onnx_graph, ort

        name = f"onnxruntime {onnxruntime.__version__}"
        model = onnx_graph.load(path)
        feed = self._named(
            [i.name for i in model.graph.input if i.name not in {w.name for w in model.graph.initializer}]
        )
        quantised = any(n.op_type == "DequantizeLinear" for n in model.graph.node)
        unfused = ", Q/DQ unfused" if quantised else ""
        notes: tuple[str, ...] = ()
        if self.device == "cuda":
            if ort.cuda_answers(path):
                placed = ort.placement(
                    path, {n: a[: self.batch_size] for n, a in feed.items()}, self.scratch, cuda=True
                )
                on_cpu = sum(n for provider, n in placed.items() if provider != "CUDAExecutionProvider")
                if on_cpu:
                    notes = (f"{on_cpu} of {sum(placed.values())} nodes have no CUDA kernel and ran on the CPU",)
                outputs = ort.run_model(path, feed, self.batch_size, cuda=True)
                return Run(outputs, f"{name} CUDA (TF32 off){unfused}", notes)
            notes = ("onnxruntime has no working CUDA provider here: it ran on the CPU",)
        halves = ort.half_types(model)
        if halves:
            outputs = ort.run_model(ort.emulate_fp16(model), feed, self.batch_size)
            return Run(outputs, f"{name} CPU, {' and '.join(halves)} rounding emulated{unfused}", notes)
        return Run(ort.run_model(path, feed, self.batch_size), f"{name} CPU{unfused}", notes)

    def engine(self, path: Path, flavour: str) -> Run:
        from deploychain.backends.trt_run import Engine

        engine = Engine(path, flavour)
        outputs = engine.run(self._named(engine.inputs), self.batch_size)
        return Run(outputs, f"{engine.name}, {engine.device_name}")

    def _torch(self, model: Any, autocast: Literal["fp16", "bf16"] | None = None) -> Run:
        from deploychain.backends.torch_run import describe, run_torch

        outputs = run_torch(model, self.inputs, self.batch_size, device=self.device, autocast=autocast)
        return Run(outputs, describe(self.device, autocast))

    def _named(self, names: list[str]) -> Arrays:
        """The inputs under an artefact's names. The chain's own exports keep the order of the model's arguments."""
        if self.task is None or set(names) <= set(self.inputs) or len(names) != len(self.inputs):
            return self.inputs
        return dict(zip(names, self.inputs.values(), strict=True))

    def _need_task(self) -> Task:
        if self.task is None:
            raise StageError("running torch weights needs the task's model", remedy="add `task: task.py:ClassName`")
        return self.task
