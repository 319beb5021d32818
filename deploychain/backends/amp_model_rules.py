"""The rules that need the model itself: `deploychain audit --model task.py:Task`, and the audit of a run.

This runs the user's code: it builds the model, takes two samples and evaluates the loss once on the CPU.
"""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from deploychain.audit.finding import AuditReport, Finding, Problem, Severity
from deploychain.backends.amp_dtype_map import DtypeMap, dtype_map
from deploychain.errors import ConfigError, DeploychainError
from deploychain.task import TaskRef

FP16_MAX = 65504.0
FP16_ZERO = 2.0**-25  # this and everything below rounds to 0
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm)
_LARGE_MAP = 256


def audit_task(reference: str, base: Path | None = None) -> AuditReport:
    """Audit the model and loss of `task.py:Task`.

    Raises:
        ConfigError: the task cannot be found or loaded.
    """
    ref = TaskRef.parse(reference, base or Path.cwd(), {})
    with redirect_stdout(sys.stderr):  # what the task prints is no part of the report
        return audit_loaded_task(ref.load(), str(ref.file or ref.source))


def task_dtype_map(reference: str, base: Path | None = None) -> DtypeMap:
    """The dtype map of `task.py:Task` on two of its test samples.

    Raises:
        ConfigError: the task cannot be loaded, or torch.export cannot export its model.
    """
    try:
        with redirect_stdout(sys.stderr):
            task = TaskRef.parse(reference, base or Path.cwd(), {}).load()
            args, kwargs, _ = _batch(task)
            return dtype_map(task.model().eval(), args, kwargs)
    except DeploychainError:
        raise
    except Exception as error:
        raise ConfigError(
            f"no dtype map: {_first_line(error)}",
            where=reference,
            remedy="torch.export must be able to export the model",
        ) from None


def audit_loaded_task(task: Any, path: str) -> AuditReport:
    """Audit a task object. What cannot be examined is said in `problems` and `notes`, never passed over."""
    try:
        model = task.model()
    except DeploychainError:
        raise
    except (Exception, SystemExit) as error:
        return AuditReport(files=1, problems=(Problem(path, f"model() failed: {_first_line(error)}"),))
    if not isinstance(model, nn.Module):
        return AuditReport(files=1, problems=(Problem(path, f"model() gave a {type(model).__name__}, not a module"),))
    try:
        args, kwargs, targets = _batch(task)
    except Exception as error:
        report = audit_model(model, path=path)
        return AuditReport(
            report.findings, 1, (Problem(path, f"test_data() gave no batch: {_first_line(error)}"),), 0, report.notes
        )
    return audit_model(model, args, kwargs, path=path, loss=lambda out: task.loss(out, targets))


def audit_model(
    model: nn.Module,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    path: str = "model",
    loss: Callable[[Any], torch.Tensor] | None = None,
    scaler: Any = True,
) -> AuditReport:
    """Every model and graph rule.

    Args:
        model: in FP32 on the CPU, as it is before training. It is not changed.
        args, kwargs: one batch of inputs; without it only the modules are inspected.
        path: named in the findings.
        loss: outputs -> scalar, to see what it is computed with.
        scaler: the GradScaler it will be trained with; True for a plain one, None for none.
    """
    audit = _Audit(path)
    audit.parameters(model, scaler)
    audit.norms(model)
    audit.sharding(model, scaler)
    problems: list[Problem] = []
    if args is not None:
        model = _copy(model)
        try:
            outputs = audit.run(model, args, kwargs or {})
            if loss is not None:
                audit.loss(loss, outputs)
        except Exception as error:
            problems.append(Problem(path, f"the model or its loss failed on two samples: {_first_line(error)}"))
        try:
            audit.graph(model.eval(), dtype_map(model.eval(), args, kwargs))
        except Exception as error:
            problems.append(Problem(path, f"no dtype map: torch.export failed: {_first_line(error)}", partial=True))
            audit.data_dependent(error)
    else:
        audit.notes.append("no inputs: modules were inspected, the graph and the loss were not")
    return AuditReport(
        tuple(sorted(audit.findings, key=lambda f: (f.rule, f.message))), 1, tuple(problems), 0, tuple(audit.notes)
    )


class _Audit:
    def __init__(self, path: str) -> None:
        self.path = path
        self.findings: list[Finding] = []
        self.notes: list[str] = []

    def found(self, rule: str, severity: Severity, where: str, message: str, fix: str) -> None:
        text = f"{where}: {message}" if where else message
        self.findings.append(Finding(self.path, 1, 1, rule, severity, text, fix))

    # -- modules ------------------------------------------------------------------------------------------------

    def parameters(self, model: nn.Module, scaler: Any) -> None:
        trainable = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        half = [n for n, p in trainable if p.dtype == torch.float16]
        if half and scaler is not None:
            self.found(
                "R08", Severity.ERROR, half[0],
                f"{len(half)} of {len(trainable)} trainable parameters are float16: GradScaler raises \"Attempting to unscale FP16 "
                "gradients\", and Adam's eps=1e-8 is 0 there", "return the model in float32; autocast casts what is worth it",
            )  # fmt: skip
        floats = [p.detach() for _, p in model.named_parameters() if p.dtype == torch.float32 and p.numel() > 1]
        wide = [p for p in floats if bool((p != 0).any()) and bool((p != 1).any())]
        if wide and sum(p.numel() for p in wide) >= 64 and all(bool((p == p.half().float()).all()) for p in wide):
            self.found(
                "R25", Severity.WARNING, "",
                "every float32 weight is exactly representable in float16: they went through .half() before, and the lost digits do not "
                "come back", "start from the float32 state dict",
            )  # fmt: skip

    def norms(self, model: nn.Module) -> None:
        for name, module in model.named_modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                self._batch_norm(name, module)
            if isinstance(module, _NORMS):
                half = any(p.dtype == torch.float16 for p in module.parameters(recurse=False))
                if isinstance(module, nn.GroupNorm) and half and module.eps <= FP16_ZERO:
                    self.found(
                        "R09", Severity.WARNING, name, f"eps={module.eps:g} is 0 in the float16 kernel of GroupNorm",
                        "keep GroupNorm in float32",
                    )  # fmt: skip
                info = torch.finfo(torch.float16)
                if module.eps in (info.tiny, info.eps, 2.0**-24 * 100):
                    self.found(
                        "R10", Severity.WARNING, name,
                        f"eps={module.eps:g} comes from finfo(float16): it shrinks the output for small activations (17 % at std 0.01)",
                        "keep the eps that the model was designed with (1e-5)",
                    )  # fmt: skip

    def _batch_norm(self, name: str, module: nn.modules.batchnorm._BatchNorm) -> None:
        for label in ("running_mean", "running_var"):
            stats = getattr(module, label)
            if stats is None:
                continue
            if stats.dtype == torch.float16:
                self.found(
                    "R26", Severity.WARNING, name, f"{label} is float16: updates with a small momentum are lost, large values are inf",
                    "keep BatchNorm in float32",
                )  # fmt: skip
                continue
            size = stats.detach().abs()
            lost = (
                (size > 0) & (size <= FP16_ZERO) if label == "running_var" else torch.zeros_like(size, dtype=torch.bool)
            )
            if bool((~(size <= FP16_MAX)).any()) or bool(lost.any()):
                self.found(
                    "R26", Severity.WARNING, name,
                    f"{label} from {size.min().item():.3g} to {size.max().item():.3g} does not fit into float16: .half() would make it inf "
                    "or 0", "fold BatchNorm into the convolution, or keep it in float32",
                )  # fmt: skip

    def sharding(self, model: nn.Module, scaler: Any) -> None:
        sharded = [n for n, m in model.named_modules() if type(m).__name__ == "FullyShardedDataParallel"]
        plain = scaler is True or (scaler is not None and type(scaler).__name__ == "GradScaler")
        if sharded and plain:
            self.found(
                "R17", Severity.ERROR, sharded[0], "FSDP1 with a plain GradScaler: each rank looks for inf in its own shard only",
                "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler()",
            )  # fmt: skip

    # -- one run on the CPU ----------------------------------------------------------------------------------------

    def run(self, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """One forward pass, in which AlphaDropout is matched with what feeds it."""
        calls = _RecordFunctions()
        made: dict[int, nn.Module] = {}
        keep: list[torch.Tensor] = []  # so that no id is used twice

        def before(module: nn.Module, inputs: Any) -> None:
            if isinstance(module, (nn.AlphaDropout, nn.FeatureAlphaDropout)) and inputs:
                feeder = made.get(id(inputs[0]))
                if not any(inputs[0] is made_by_selu for made_by_selu in calls.selus):
                    self.found(
                        "R16", Severity.WARNING, names.get(id(module), ""),
                        f"AlphaDropout is fed by {type(feeder).__name__ if feeder is not None else 'no SELU'}: it keeps mean and variance of "
                        "SELU outputs only", "nn.Dropout(p)",
                    )  # fmt: skip

        def after(module: nn.Module, _inputs: Any, output: Any) -> None:
            if isinstance(output, torch.Tensor) and next(module.children(), None) is None:
                made[id(output)] = module
                keep.append(output)

        names = {id(m): n for n, m in model.named_modules()}
        handles = [
            h for m in model.modules() for h in (m.register_forward_pre_hook(before), m.register_forward_hook(after))
        ]
        try:
            with calls:
                outputs = model.eval()(*args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()
        self._banned(calls.names, "forward")
        return outputs

    def loss(self, loss: Callable[[Any], torch.Tensor], outputs: Any) -> None:
        """R12: BCE in the loss. R01: what the loss is computed in when the outputs are float16."""
        with _RecordFunctions() as calls:
            loss(outputs)
        self._banned(calls.names, "loss")
        if "binary_cross_entropy" in calls.names:
            return
        with torch.autocast("cpu", dtype=torch.float16):
            value = loss(_to_half(outputs))
        if isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16):
            self.found(
                "R01", Severity.WARNING, "loss",
                f"float16 outputs give a {str(value.dtype)[6:]} loss although autocast is on: it is computed by ops that autocast does not "
                "raise to float32", "outputs.float() at the start of the loss",
            )  # fmt: skip

    def _banned(self, names: Iterable[str], where: str) -> None:
        if "binary_cross_entropy" in set(names):
            self.found(
                "R12", Severity.ERROR, where, "binary_cross_entropy raises RuntimeError under CUDA autocast",
                "binary_cross_entropy_with_logits on the logits",
            )  # fmt: skip

    # -- the graph under CUDA autocast ---------------------------------------------------------------------------

    def graph(self, model: nn.Module, table: DtypeMap) -> None:
        counts = ", ".join(f"{n} ops {name}" for name, n in sorted(table.counts().items()))
        self.notes.append(f"dtype map under CUDA autocast ({table.policies} policies of torch {table.torch}): {counts}")
        for op in table.ops:
            if op.policy == "banned" and not any(f.rule == "R12" for f in self.findings):
                self._banned(["binary_cross_entropy"], op.module or op.node)
            if op.policy == "custom" and len(set(op.inputs)) > 1 and not _has_autocast(op.op):
                self.found(
                    "R13", Severity.WARNING, op.module or op.node,
                    f"custom operator {op.op} has no AutocastCUDA kernel and gets {' and '.join(sorted(set(op.inputs)))} tensors under autocast",
                    f'torch.library.register_autocast("{_qualified(op.op)}", "cuda", torch.float32)',
                )  # fmt: skip
        self._constants(model, table)

    def _constants(self, model: nn.Module, table: DtypeMap) -> None:
        """R09 and R23 in the exported graph: scalars that vanish, and grids in float16."""
        for op in table.ops:
            if op.dtype != "float16":
                continue
            scalar = table.scalars.get(op.node)
            if scalar is not None and 0 < abs(scalar) <= FP16_ZERO:
                self.found(
                    "R09", Severity.WARNING, op.module or op.node,
                    f"{op.op} with {scalar:g} runs in float16 under CUDA autocast, where that is 0", "use 1e-6, or .float() around it",
                )  # fmt: skip
        for node, (dtype, size) in table.grids.items():
            if dtype in ("float16", "bfloat16") and size > _LARGE_MAP:
                self.found(
                    "R23", Severity.WARNING, node,
                    f"the grid of grid_sample is {dtype} for a map of {size}: coordinates are off by up to {size * 0.000122:.2f} pixels",
                    'with torch.autocast("cuda", enabled=False): compute and use the grid in float32',
                )  # fmt: skip

    def data_dependent(self, error: Exception) -> None:
        if "data-dependent" in str(error).lower():
            self.found(
                "R18", Severity.ERROR, "forward",
                f"torch.export fails on a test of the data: {_first_line(error)[:120]}",
                "take assert and if on tensor values out of forward; probe with hooks or deploychain.monitor",
            )  # fmt: skip


class _RecordFunctions(TorchFunctionMode):
    """Names of the torch functions that run inside."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.selus: list[torch.Tensor] = []  # kept, so that no id is used twice

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        self.names.add(name)
        result = func(*args, **(kwargs or {}))
        if name in ("selu", "selu_") and isinstance(result, torch.Tensor):
            self.selus.append(result)
        return result


def _has_autocast(op: str) -> bool:
    namespace, _, rest = op.partition(".")
    name = f"{namespace}::{rest.removesuffix('.default')}"
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCUDA"))


def _qualified(op: str) -> str:
    namespace, _, rest = op.partition(".")
    return f"{namespace}::{rest.removesuffix('.default')}"


def _batch(task: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """(args, kwargs, targets) of two samples of the test data."""
    data = task.test_data()
    if isinstance(data, torch.utils.data.DataLoader):
        inputs, targets = next(iter(data))
    else:
        loader = torch.utils.data.DataLoader(data, batch_size=2)
        inputs, targets = next(iter(loader))
    if isinstance(inputs, Mapping):
        return (), dict(inputs), targets
    return (tuple(inputs), {}, targets) if isinstance(inputs, (tuple, list)) else ((inputs,), {}, targets)


def _copy(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception:
        return model  # some modules cannot be copied; only eval() and a forward pass are done to it


def _to_half(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().half() if value.is_floating_point() else value
    if isinstance(value, Mapping):
        return type(value)({k: _to_half(v) for k, v in value.items()})  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_to_half(v) for v in value))
    return type(value)(_to_half(v) for v in value) if isinstance(value, (list, tuple)) else value


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
