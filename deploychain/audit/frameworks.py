"""Autocast regions, and the settings of Lightning, Fabric, Accelerate and Hugging Face that open them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from deploychain.audit.astnames import Scope, dotted, keyword, last_name
from deploychain.audit.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Region:
    """An autocast region as far as the code tells. dtype "?" is fp16 or bf16, "own" that of a model or tensor;
    `enabled` None is decided at run time.
    """

    device: str  # cuda | cpu | other | ?
    dtype: str  # fp16 | bf16 | fp32 | own | ?
    enabled: bool | None
    node: ast.AST
    framework: str = ""  # "Lightning", "Accelerate", ... where no autocast is written in the code

    @property
    def half(self) -> bool:
        """Ops on the lower-precision list may run in fp16 or bf16 here."""
        return self.enabled is not False and self.dtype in ("fp16", "bf16", "?")

    @property
    def wide(self) -> bool:
        """Ops of both lists run in fp32 here: a float32 region is active on CUDA (elsewhere it disables itself)."""
        return self.enabled is not False and self.dtype == "fp32" and self.device == "cuda"

    @property
    def fp16(self) -> bool:
        return self.enabled is not False and self.dtype == "fp16"

    @property
    def cuda(self) -> bool:
        """The CUDA tables apply (an unknown device is taken for CUDA: that is what AMP code is written for)."""
        return self.device in ("cuda", "?")


class Frameworks:
    """Lightning, Fabric, Accelerate and Hugging Face Trainer settings that turn autocast and scaling on."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.lightning = self.fabric = self.accelerate = self.trainer = ""
        self.uses_accelerate = any(v.startswith("accelerate.") for names in symbols.imports.values() for v in names)
        for call in symbols.calls:
            name = last_name(call.func)
            full = symbols.qual(call.func) or ""
            scope = symbols.scope(call)
            if name == "Trainer" and "lightning" in full:
                self.lightning = self._precision(keyword(call, "precision"), scope) or self.lightning
            elif name == "Fabric" and "lightning" in full:
                self.fabric = self._precision(keyword(call, "precision"), scope) or self.fabric
            elif name == "Accelerator" and full.startswith("accelerate"):
                value = symbols.const(keyword(call, "mixed_precision"), scope)
                self.accelerate = value if value in ("fp16", "bf16") else self.accelerate
            elif name.endswith(("TrainingArguments", "SFTConfig", "DPOConfig")):
                for flag in ("fp16", "bf16"):
                    if self._on(keyword(call, flag), scope):
                        self.trainer = flag

    def _on(self, expr: ast.expr | None, scope: Scope) -> bool:
        """`True`, `args.dtype == "fp16"` of that default, `cfg.fp16` that is on by default."""
        if expr is None:
            return False
        if self.symbols.decisions.holds(expr, scope) is True:
            return True
        return all(getattr(r.expr, "value", None) is True for r in self.symbols.resolve(expr, scope))

    def _precision(self, expr: ast.expr | None, scope: Scope) -> str:
        value = str(self.symbols.const(expr, scope)) if expr is not None else ""
        if value in ("16", "16-mixed"):
            return "fp16"
        if value == "bf16" or value == "bf16-mixed":
            return "bf16"
        return "16-true" if value == "16-true" else ""

    def kind(self, expr: ast.expr, scope: Scope) -> str:
        """ "accelerate" or "fabric" where an expression is such an object."""
        for ref in self.symbols.resolve(expr, scope):
            if isinstance(ref.expr, ast.Call):
                full = self.symbols.qual(ref.expr.func, ref.scope) or ""
                if full.startswith("accelerate") and full.endswith("Accelerator"):
                    return "accelerate"
                if "lightning" in full and full.endswith("Fabric"):
                    return "fabric"
        leaf = (dotted(expr) or "").rpartition(".")[2]
        return {"accelerator": "accelerate", "fabric": "fabric"}.get(leaf, "")

    def region(self, kind: str, node: ast.AST) -> Region:
        dtype = self.accelerate if kind == "accelerate" else self.fabric
        return Region("?", dtype or "?", None if not dtype else True, node, kind)

    def scaled(self, kind: str) -> bool:
        """The framework surely scales the loss (fp16)."""
        return (self.accelerate if kind == "accelerate" else self.fabric) == "fp16"

    def ambient(self, scope: Scope) -> Region | None:
        """The region that a framework opens around a method: training_step of a LightningModule and the like."""
        cls = scope.owner
        if cls is None or scope.name not in _STEP_METHODS:
            return None
        if scope.name == "forward" and cls.name in self._driven:
            return self._driven[cls.name]
        bases = {last_name(b) for c in self.symbols.bases(cls) for b in getattr(c.node, "bases", [])}
        if bases & {"LightningModule"} and self.lightning in ("fp16", "bf16"):
            return Region("?", self.lightning, True, scope.node, "Lightning")
        if any(b.endswith("Trainer") for b in bases) and self.trainer and scope.name == "compute_loss":
            return Region("?", self.trainer, True, scope.node, "Trainer")
        return None

    def half_by_trainer(self, scope: Scope) -> ast.AST | None:
        """The method of a LightningModule whose trainer makes it half as a whole: precision="16-true"."""
        cls = scope.owner
        if cls is None or scope.name not in _STEP_METHODS or self.lightning != "16-true":
            return None
        bases = {last_name(b) for c in self.symbols.bases(cls) for b in getattr(c.node, "bases", [])}
        return scope.node if "LightningModule" in bases else None

    @cached_property
    def _driven(self) -> dict[str, Region]:
        """Modules of this file whose forward pass Accelerate or the Hugging Face trainer runs under autocast."""
        found: dict[str, Region] = {}
        if not self.accelerate and not self.trainer:
            return found
        for call in self.symbols.calls:
            scope = self.symbols.scope(call)
            leaf = last_name(call.func)
            if leaf == "prepare" and self.accelerate and isinstance(call.func, ast.Attribute):
                if self.kind(call.func.value, scope) == "accelerate":
                    for argument in call.args:
                        for cls in self.symbols.classes_in(argument, scope)[:8]:
                            found.setdefault(cls.name, Region("?", self.accelerate, True, call, "Accelerate"))
            elif leaf.endswith("Trainer") and self.trainer:
                model = keyword(call, "model") or (call.args[0] if call.args else None)
                for cls in self.symbols.classes_in(model, scope)[:8] if model is not None else ():
                    found.setdefault(cls.name, Region("?", self.trainer, True, call, "Trainer"))
        return found


_STEP_METHODS = frozenset(
    {"training_step", "validation_step", "test_step", "predict_step", "forward", "compute_loss", "shared_step"}
)
