"""What a device is given: models, what was asked of each, shape profiles, test data with the answers to expect."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deploychain.device.archive import ArchiveReader
from deploychain.errors import ArtifactError
from deploychain.records import EvalReport

BUNDLE_SCHEMA = "deploychain.bundle/1"
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class WeakRequest:
    """The same wish for a weakly typed network (TensorRT up to 10.x): a model, flags, and layers held in FP32."""

    model: str
    flags: tuple[Literal["fp16", "int8"], ...]  # they become options of a command: nothing else may come in
    layer_precisions: Mapping[str, Literal["fp32", "fp16"]] = field(default_factory=dict)  # by ONNX node


@dataclass(frozen=True, slots=True)
class EngineWish:
    """One engine to build."""

    name: Literal["fp32", "fp16", "int8"]
    model: str  # path in the bundle; its types are the request (strongly typed)
    nodes: Mapping[str, str]  # ONNX node -> precision that it should compute in; empty where no plan was made
    op_types: Mapping[str, str]
    weak: WeakRequest


@dataclass(frozen=True, slots=True)
class TensorFile:
    """One array of the test data."""

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Golden:
    """A slice of the test data and what each ONNX model answers on it."""

    samples: int
    data_sha256: str | None
    inputs: tuple[TensorFile, ...]
    reference: str  # the stage whose outputs errors are measured against
    outputs: Mapping[str, tuple[TensorFile, ...]]  # stage -> outputs
    targets: TensorFile | None = None  # class index per sample
    classes: tuple[str, ...] = ()
    fixed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # input -> shape, where the model has no other


@dataclass(frozen=True, slots=True)
class Bundle:
    """The manifest of a bundle."""

    schema: Literal["deploychain.bundle/1"]
    name: str
    engines: tuple[EngineWish, ...]
    profiles: Mapping[str, Mapping[str, tuple[int, ...]]]  # input -> min, opt, max
    golden: Golden
    evals: tuple[EvalReport, ...]  # of the ONNX models, on the slice
    directions: Mapping[str, Literal["higher", "lower"]]
    modules: Mapping[str, str]  # ONNX node -> torch module
    versions: Mapping[str, str]
    files: tuple[Mapping[str, Any], ...] = ()

    def engine(self, name: str) -> EngineWish:
        for wish in self.engines:
            if wish.name == name:
                return wish
        raise ArtifactError(
            f"the bundle has no {name} engine", remedy=f"it has {', '.join(w.name for w in self.engines)}"
        )


def read_manifest(manifest: Mapping[str, Any], where: str) -> Bundle:
    """Validate a manifest.

    Raises:
        ArtifactError: another schema, or a key is missing or of a wrong type; the key is named.
    """
    from pydantic import TypeAdapter, ValidationError

    schema = manifest.get("schema")
    if schema != BUNDLE_SCHEMA:
        raise ArtifactError(
            f"the bundle has schema {schema!r}, this version reads {BUNDLE_SCHEMA!r}",
            where=where,
            remedy="use the deploychain version that made it, or make it again",
        )
    try:
        bundle = TypeAdapter(Bundle).validate_python(dict(manifest))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ArtifactError(f"the bundle's manifest: {key}: {first['msg']}", where=where) from None
    for name, shapes in bundle.profiles.items():
        sizes = [shapes.get(key, ()) for key in ("min", "opt", "max")]
        ranks = {len(s) for s in sizes} | {len(t.shape) for t in bundle.golden.inputs if t.name == name}
        fits = set(shapes) == {"min", "opt", "max"} and len(ranks) == 1 and 0 not in ranks
        if not fits or any(not 0 <= a <= b <= c for a, b, c in zip(*sizes, strict=True)):
            raise ArtifactError(f"the bundle's manifest: the profile of {name!r} makes no sense", where=where)
        if math.prod(sizes[2]) >= 1 << 31:  # no tensor of TensorRT holds more elements
            raise ArtifactError(f"the bundle's manifest: the profile of {name!r} is too large", where=where)
    _check_content(bundle, where)
    inside = {str(f["path"]) for f in bundle.files}
    golden = bundle.golden
    arrays = [*golden.inputs, *(t for ts in golden.outputs.values() for t in ts)]
    named = [w.model for w in bundle.engines] + [w.weak.model for w in bundle.engines] + [a.file for a in arrays]
    named += [golden.targets.file] if golden.targets else []
    for path in named:
        if path not in inside:
            raise ArtifactError(f"the manifest names {path}, which the bundle does not hold", where=where)
    return bundle


def _check_content(bundle: Bundle, where: str) -> None:
    """What the build takes for granted.

    Raises:
        ArtifactError: what the manifest says does not go together; the key is named.
    """
    golden = bundle.golden
    reference = golden.outputs.get(golden.reference, ())
    rows = [*golden.inputs, *reference, *([golden.targets] if golden.targets else [])]
    wrong = {
        # The name becomes a folder of the engine cache.
        "name": not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", bundle.name),
        "engines": not bundle.engines or len({w.name for w in bundle.engines}) != len(bundle.engines),
        "golden.inputs": not golden.inputs,
        "golden.reference": not reference,
        "golden.samples": golden.samples < 1 or any(t.shape[:1] != (golden.samples,) for t in rows),
        "golden.targets": golden.targets is not None
        and (len(golden.targets.shape) != 1 or golden.targets.dtype[1:2] not in ("i", "u")),
        "golden.classes": len(golden.classes) not in (0, golden.samples),
        "golden.fixed": any(not shape or min(shape) < 1 for shape in golden.fixed.values()),
    }
    for key, bad in wrong.items():
        if bad:
            raise ArtifactError(f"the bundle's manifest: {key} makes no sense", where=where)


def open_bundle(path: Path) -> tuple[Bundle, str, ArchiveReader]:
    """Read a bundle's manifest: (bundle, sha256 of its content, reader).

    Raises:
        ArtifactError: it is no bundle, damaged, or of another schema.
    """
    reader = ArchiveReader(path)
    manifest = reader.read_manifest()
    return read_manifest(manifest, str(path)), reader.content_sha256, reader


def load_arrays(folder: Path, tensors: tuple[TensorFile, ...]) -> Arrays:
    """Read arrays of an unpacked bundle. Pickled objects are never loaded.

    Raises:
        ArtifactError: a file is no array, or another one than the manifest says.
    """
    arrays: Arrays = {}
    for tensor in tensors:
        path = folder / tensor.file
        try:
            with path.open("rb") as stream:
                if stream.read(6) != b"\x93NUMPY":
                    raise ArtifactError("not an array file", where=str(path))
            # Mapped: a header that promises more than the file has is refused, and takes no memory.
            array = np.array(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError, EOFError, OverflowError, SyntaxError, TokenError) as error:  # the header is Python
            raise ArtifactError(f"not a readable array: {error}", where=str(path)) from None
        if array.shape != tensor.shape or array.dtype.str != tensor.dtype:
            raise ArtifactError(
                f"it holds {array.dtype.str} {array.shape}, the manifest says {tensor.dtype} {tensor.shape}",
                where=str(path),
            )
        arrays[tensor.name] = array
    return arrays
