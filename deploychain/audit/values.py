"""What CUDA and CPU autocast do to dtypes, and the values that the dtype walk carries.

These are the rules for reading code without torch. The dtype map of a real model (`audit --model`) takes its policy
lists from the installed torch instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from deploychain.audit.astnames import Ref
from deploychain.audit.frameworks import Region
from deploychain.audit.tree import walk


def words(text: str) -> frozenset[str]:
    """A set of names, written with spaces between."""
    return frozenset(text.split())


LOWER = words(
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc matmul mm "
    "bmm mv addmm addmv addbmm baddbmm addr einsum chain_matmul multi_dot bilinear prelu "
    "scaled_dot_product_attention"
)
FP32_CUDA = words(
    "softmax log_softmax softmin exp expm1 log log10 log2 log1p pow reciprocal rsqrt sum prod cumsum "
    "cumprod norm vector_norm matrix_norm normalize cosine_similarity cdist pdist softplus layer_norm "
    "group_norm rms_norm acos asin cosh sinh tan erfinv renorm nuclear_norm logsumexp interpolate "
    "upsample stft dist"
)
LOWER_LAYERS = words(
    "Linear LazyLinear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
    "LazyConv2d PReLU MultiheadAttention LSTM GRU RNN LSTMCell GRUCell"
)
FP32_LAYERS = words("Softmax LogSoftmax Softmin LayerNorm GroupNorm RMSNorm Softplus Upsample CosineSimilarity")
PASS_LAYERS = words(
    "ReLU ReLU6 LeakyReLU GELU SiLU ELU SELU CELU Sigmoid Tanh Hardswish Hardsigmoid Mish Dropout "
    "Dropout1d Dropout2d AlphaDropout Identity Flatten Unflatten BatchNorm1d BatchNorm2d BatchNorm3d "
    "SyncBatchNorm InstanceNorm2d MaxPool1d MaxPool2d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d "
    "AdaptiveMaxPool2d PixelShuffle ZeroPad2d"
)
NEVER_CAST = words("tensor as_tensor zeros ones full empty randn rand arange linspace eye from_numpy")
NOT_TENSORS = words(
    "size dim numel item tolist argmax argmin argsort long int bool shape device stride numpy nelement "
    "is_cuda data_ptr topk_indices ndimension backward"
)


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value.

    dtype: fp16, bf16, "half" (either), fp32, scalar, other (integers, strings, ...), or None.
    sure: the dtype follows from what the code says; False where a callee that is not shown may end in an FP32 op.
    via: the expression that made it half, for messages.
    module: it is a module whose parameters have this dtype (None: as they were made).
    names: it is no tensor but the dtype object of this name, `x.dtype`.
    made: the expression and scope that made a module, where it is not to be found under a name.
    mixed: it was combined with values of unknown dtype, which may have made it fp32.
    off: it is the constant False.
    """

    dtype: str | None = None
    sure: bool = False
    via: ast.AST | None = None
    module: bool = False
    items: tuple[Value, ...] = ()
    bounded: bool = False  # known to be a probability
    names: str = ""
    made: Ref | None = None
    mixed: bool = False
    off: bool = False

    @property
    def half(self) -> bool:
        return self.dtype in ("fp16", "bf16", "half")

    @property
    def tensor(self) -> Value:
        """A tensor of the same dtype: without what is known of the whole (elements, bounds, module)."""
        return Value(self.dtype, self.sure, self.via, mixed=self.mixed)

    @property
    def whole(self) -> Value:
        """A module of the same dtype: a part of this one, whatever it is made of."""
        return Value(self.dtype, self.sure, self.via, module=True)


UNKNOWN_VALUE = Value()
FP32 = Value("fp32", True)
SCALAR = Value("scalar", True)
OTHER = Value("other", True)
OFF = Value("other", off=True)
MODULE = Value(None, True, module=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """One operation that the walk came by: a call or a binary operation, with the values that it got."""

    node: ast.expr
    name: str  # "softmax", "nn.BCELoss", "+", ...
    args: tuple[Value, ...]
    result: Value
    region: Region | None
    function: object  # Scope
    no_grad: bool = False
    root: object = None  # Scope of the function, called by nothing in the file, whose run led here


# What a tokenizer returns is of integers.
INTEGER_NAME = re.compile(r"^(attention_mask|input_ids|token_type_ids|position_ids|special_tokens_mask)$")


def in_region(dtype: str) -> str:
    return {"fp16": "fp16", "bf16": "bf16"}.get(dtype, "half")


def promote(left: Value, right: Value) -> Value:
    """Dtype of an elementwise operation."""
    if left.dtype == "scalar" and right.dtype == "scalar":
        return SCALAR
    if left.dtype in ("scalar", "other"):
        return right.tensor
    if right.dtype in ("scalar", "other"):
        return left.tensor
    if "fp32" in (left.dtype, right.dtype):
        return FP32 if left.dtype == right.dtype else Value("fp32", left.sure and right.sure)
    if left.half and right.half:
        if left.dtype == right.dtype:
            return Value(left.dtype, left.sure and right.sure, left.via, mixed=left.mixed or right.mixed)
        return Value("half", False, left.via)
    half = left if left.half else right if right.half else None
    if half is not None:
        return Value(half.dtype, False, half.via, mixed=True)
    return UNKNOWN_VALUE


MODEL_NAMES = words(
    "model net network module encoder decoder backbone student teacher generator discriminator unet vae "
    "netg netd gen disc critic actor policy transformer classifier detector head ddp_model fsdp_model "
    "raw_model self engine resnet bert vit gpt lora_model enc dec asr tts midas detr clf"
)
PYTHON = words(
    "print len range enumerate zip list dict tuple set int float str isinstance getattr hasattr next iter "
    "sum min max sorted map filter open super format round abs any all type next_batch time perf_counter"
)
TENSOR_METHODS = words(
    "mean var std sqrt abs max min amax amin clamp clamp_min clamp_ masked_fill masked_fill_ view reshape "
    "permute transpose flatten squeeze unsqueeze expand repeat chunk split relu sigmoid tanh gelu neg add "
    "mul div sub add_ mul_ div_ sub_ t contiguous index_select gather scatter topk square square_ round "
    "floor ceil sign softmax log_softmax view_as expand_as reshape_as swapaxes movedim narrow roll flip "
    "tril triu detach_ clip clip_ type_as masked_select new_tensor new_zeros new_ones new_full new_empty unbind select "
    "cumsum_ sqrt_ neg_ sigmoid_ tanh_ relu_ unfold fill_ zero_ norm_ tile sort aminmax median quantile lerp addcmul "
    "baddbmm clamp_max clamp_max_ clamp_min_ index_add scatter_add masked_scatter true_divide divide multiply subtract"
)


def runs_a_model(leaf: str) -> bool:
    low = leaf.lower()
    if low in MODEL_NAMES:
        return True
    return any(
        part in low
        for part in (
            "model",
            "net",
            "encod",
            "decod",
            "backbone",
            "generator",
            "discriminator",
            "student",
            "teacher",
            "forward",
            "transformer",
            "classifier",
            "head",
            "critic",
        )
    ) and not low.startswith(
        ("load", "save", "build", "make", "create", "get_", "log", "prepare", "wrap", "update", "eval")
    )


NO_FORWARD = re.compile(
    r"loss|^(get|set|load|save|register|configure|compute|named|add|remove|enable|disable|gradient|is|has|can|from|push|"
    r"init|zero|no|train|eval|validat|fit|predict_step|freeze|unfreeze)(_|$)|^(parameters|modules|children|buffers|state_dict|"
    r"generate|sample|step|backward|tokenize\w*|requires_grad_|apply|share_memory|numel|size|training_step|\w+_step|config)$"
)


def part_of_a_model(name: str) -> bool:
    """`model.cls(x)`, `self.model.lm(x)`: a submodule, or a method that is likely to end in one."""
    base, _, leaf = name.rpartition(".")
    holder = base.rpartition(".")[2]
    return holder not in ("", "self") and runs_a_model(holder) and NO_FORWARD.search(leaf) is None


def is_pipeline(value: Value) -> bool:
    """A pipeline of diffusers or transformers returns images and text, not tensors."""
    return value.via is not None and any(
        "ipeline" in (getattr(n, "id", "") or getattr(n, "attr", "")) for n in walk(value.via)
    )


def join_envs(a: dict[str, Value], b: dict[str, Value], a_leaves: bool, b_leaves: bool) -> dict[str, Value]:
    if a_leaves:
        return b
    if b_leaves:
        return a
    return {name: join([a.get(name, UNKNOWN_VALUE), b.get(name, UNKNOWN_VALUE)]) for name in a.keys() | b.keys()}


def join(values: Iterable[Value]) -> Value:
    """What holds on at least one way: half wins, but is no longer sure where another way says otherwise."""
    best: Value | None = None
    for value in values:
        if best is None:
            best = value
        elif value == best:
            continue
        elif value.half and not best.half:
            best = Value(value.dtype, False if best.dtype == "fp32" else value.sure, value.via, value.module)
        elif best.half and not value.half:
            best = Value(best.dtype, False if value.dtype == "fp32" else best.sure, best.via, best.module)
        elif value.dtype != best.dtype:
            best = Value("half", False, best.via) if value.half and best.half else UNKNOWN_VALUE
        else:
            best = Value(best.dtype, best.sure and value.sure, best.via, best.module)
    return best or UNKNOWN_VALUE
