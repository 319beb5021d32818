"""Which called expressions are losses of torch."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Ref, Scope, dotted, last_name
from deploychain.audit.elements import looped
from deploychain.audit.symbols import Symbols

_LOSS_NAME = re.compile(
    r"(^|_)(loss|criterion|criteria|crit|objective)(_?f(n|unc|unction))?(_?\d)?$|loss_?f(n|unc|unction)?$",
    re.IGNORECASE,
)
FUNCTION_LOSSES = {
    # name -> True where the target holds class indices, so that nothing promotes the result to fp32
    "cross_entropy": True,
    "nll_loss": True,
    "ctc_loss": True,
    "multi_margin_loss": True,
    "multilabel_margin_loss": True,
    "cosine_embedding_loss": True,
    "triplet_margin_loss": True,
    "margin_ranking_loss": True,
    "binary_cross_entropy": False,
    "binary_cross_entropy_with_logits": False,
    "mse_loss": False,
    "l1_loss": False,
    "smooth_l1_loss": False,
    "huber_loss": False,
    "kl_div": False,
    "poisson_nll_loss": False,
    "gaussian_nll_loss": False,
    "soft_margin_loss": False,
    "multilabel_soft_margin_loss": False,
    "hinge_embedding_loss": False,
}
MODULE_LOSSES = {
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "nll_loss",
    "CTCLoss": "ctc_loss",
    "MultiMarginLoss": "multi_margin_loss",
    "MultiLabelMarginLoss": "multilabel_margin_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss",
    "TripletMarginLoss": "triplet_margin_loss",
    "MarginRankingLoss": "margin_ranking_loss",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "MSELoss": "mse_loss",
    "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "KLDivLoss": "kl_div",
    "PoissonNLLLoss": "poisson_nll_loss",
    "GaussianNLLLoss": "gaussian_nll_loss",
    "SoftMarginLoss": "soft_margin_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss",
}
# Loss classes of other packages that people drop in for CrossEntropyLoss.
_FOREIGN_LOSSES = {
    "LabelSmoothingCrossEntropy": "cross_entropy",
    "SoftTargetCrossEntropy": "kl_div",
    "LabelSmoothing": "cross_entropy",
}


def loss_name(symbols: Symbols, func: ast.expr, scope: Scope) -> tuple[str, ast.Call | None] | None:
    """("cross_entropy", constructor or None) where a called expression is a loss of torch; ("", None) where it is
    only named like one."""
    name = symbols.qual(func, scope)
    if name is not None:
        leaf = name.rpartition(".")[2]
        if name.startswith(("torch.nn.functional.", "torch.")) and leaf in FUNCTION_LOSSES:
            return leaf, None
        return None if not _LOSS_NAME.search(leaf) or name.startswith(("torch.", "math.")) else ("", None)
    if isinstance(func, ast.Call):
        return _loss_class(symbols, func, scope)
    refs = [*symbols.resolve(func, scope), *looped(symbols, func, scope)]
    if _by_precision(symbols, refs):
        return None
    for ref in refs:
        if isinstance(ref.expr, ast.Call):
            made = _loss_class(symbols, ref.expr, ref.scope)
            if made is not None:
                return made
        else:
            name = symbols.qual(ref.expr, ref.scope)
            if name is not None and name.rpartition(".")[2] in FUNCTION_LOSSES:
                return name.rpartition(".")[2], None
    text = dotted(func)
    if text is not None and _LOSS_NAME.search(text.rpartition(".")[2]):
        return "", None
    return None


_PRECISION = re.compile(r"half|fp16|float16|bf16|precision|(?<![a-z])amp(?![a-z])", re.IGNORECASE)


def _by_precision(symbols: Symbols, refs: list[Ref]) -> bool:
    """`if not fp16: return CrossEntropyLoss()`, else one of another class: half precision has a loss of its own."""
    made = [r for r in refs if isinstance(r.expr, ast.Call)]
    other = [r for r in made if _loss_class(symbols, r.expr, r.scope) is None]  # type: ignore[arg-type]
    if not other or len(made) == len(other):
        return False
    for ref in made:
        node: ast.AST | None = ref.expr
        while node is not None and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            if isinstance(node, ast.If | ast.IfExp) and _PRECISION.search(symbols.text(node.test)):
                return True
            node = symbols.parent.get(node)
    return False


def _loss_class(symbols: Symbols, call: ast.Call, scope: Scope) -> tuple[str, ast.Call] | None:
    inner = call
    while (
        isinstance(inner.func, ast.Attribute)
        and inner.func.attr in ("to", "cuda", "cpu")
        and isinstance(inner.func.value, ast.Call)
    ):
        inner = inner.func.value
    name = symbols.qual(inner.func, scope)
    if last_name(inner.func) == "partial" and inner.args:
        target = symbols.qual(inner.args[0], scope) or ""
        leaf = target.rpartition(".")[2]
        return (leaf, inner) if target.startswith("torch.") and leaf in FUNCTION_LOSSES else None
    if name is None:
        return _loss_subclass(symbols, inner, scope)
    leaf = name.rpartition(".")[2]
    if name.startswith("torch.nn.") and leaf in MODULE_LOSSES:
        return MODULE_LOSSES[leaf], inner
    return (_FOREIGN_LOSSES[leaf], inner) if leaf in _FOREIGN_LOSSES else None


def _loss_subclass(symbols: Symbols, call: ast.Call, scope: Scope) -> tuple[str, ast.Call] | None:
    """A class of this file that is derived from a loss of torch."""
    cls = symbols.classes.get(last_name(call.func))
    for base in getattr(cls.node, "bases", []) if cls is not None else []:
        name = symbols.qual(base, scope) or ""
        if name.startswith("torch.nn.") and name.rpartition(".")[2] in MODULE_LOSSES:
            return MODULE_LOSSES[name.rpartition(".")[2]], call
    return None
