"""A bundle carries every file in which a model keeps weights, and no other file of the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from deploychain import chain
from deploychain.backends.ort import run_model
from deploychain.config import load_pipeline
from deploychain.device.bundle import load_arrays, open_bundle
from deploychain.device.bundling import find_pipeline, make_bundle, weight_files
from deploychain.engine.onnxfile import external_files
from deploychain.errors import ArtifactError

pytestmark = pytest.mark.chain
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3)


def outside(name: str, location: str, array: np.ndarray, folder: Path | None = None) -> TensorProto:
    """A tensor whose bytes lie in another file, which is written where ``folder`` is given."""
    tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(array.dtype), dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    if folder is not None:
        place = folder / location
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(array.tobytes())
    return tensor


def model(weights: TensorProto, bias: TensorProto) -> ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="/MatMul"),
        helper.make_node("Add", ["m", "b"], ["y"], name="/Add"),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", k]) for n, k in (("x", 4), ("y", 3)))
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=[weights, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def naming(folder: Path, location: str) -> Path:
    """A model that keeps weights in ``location``, whatever lies there."""
    path = folder / "foreign.onnx"
    bias = numpy_helper.from_array(np.zeros(3, np.float32), "b")
    path.write_bytes(model(outside("w", location, WEIGHT), bias).SerializeToString())
    return path


def test_every_file_that_the_model_names_travels_and_the_model_runs_from_the_bundle(tmp_path: Path) -> None:
    bias = np.array([0.5, -1, 2], np.float32)
    # One file per tensor, as torch.onnx.export leaves them for large models, one of them in a folder.
    made = model(outside("w", "onnx__MatMul_7", WEIGHT, tmp_path), outside("b", "parts/fc.bias", bias, tmp_path))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    (tmp_path / "m.onnx.data").write_bytes(b"of an earlier export; nothing names it")
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x)
    (tmp_path / "pipeline.yaml").write_text(
        "name: foreign\nstart: {onnx: m.onnx}\ndata: d.npz\nstages:\n  evaluate: {device: cpu}\n"
    )
    chain.run(load_pipeline(tmp_path / "pipeline.yaml"))
    file, folder = find_pipeline(tmp_path / "pipeline.yaml", None)
    bundle, _, reader = open_bundle(make_bundle(file, folder, tmp_path / "b.tar").path)
    assert {str(f["path"]) for f in bundle.files if str(f["path"]).startswith("models/")} == {
        "models/onnx-fp32/model.onnx",
        "models/onnx-fp32/onnx__MatMul_7",
        "models/onnx-fp32/parts/fc.bias",
    }
    reader.unpack(tmp_path / "elsewhere")
    got = run_model(tmp_path / "elsewhere" / bundle.engines[0].model, {"x": x})["y"]
    assert got == pytest.approx(x.astype(np.float64) @ WEIGHT + bias, rel=1e-5, abs=1e-5)
    assert load_arrays(tmp_path / "elsewhere", bundle.golden.outputs["onnx-fp32"])["y"] == pytest.approx(got)


def test_a_changed_weights_file_makes_the_run_stale(tmp_path: Path) -> None:
    path = naming(tmp_path, "w.bin")
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    np.savez(tmp_path / "d.npz", x=np.ones((2, 4), np.float32))
    (tmp_path / "pipeline.yaml").write_text(
        f"name: foreign\nstart: {{onnx: {path.name}}}\ndata: d.npz\nstages:\n  evaluate: {{device: cpu}}\n"
    )
    pipeline = load_pipeline(tmp_path / "pipeline.yaml")
    chain.run(pipeline)
    assert [s.status for s in chain.dry_run(pipeline).stages] == ["cached"]
    (tmp_path / "w.bin").write_bytes((WEIGHT + 1).tobytes())
    (row,) = chain.dry_run(pipeline).stages
    assert row.status == "stale" and "w.bin" in row.reason


def test_tensors_are_found_wherever_onnx_allows_them(tmp_path: Path) -> None:
    def constant(location: str) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [location], value=outside("t", location, WEIGHT))

    branch = helper.make_graph(
        [constant("in-branch")], "then", [], [], initializer=[outside("i", "branch-init", WEIGHT)]
    )
    deep = helper.make_graph(
        [helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)], "d", [], []
    )
    loop = helper.make_node("Loop", ["n", "c"], ["l"], body=deep)
    sparse = onnx.SparseTensorProto(
        values=outside("v", "sparse-values", WEIGHT), indices=outside("k", "sparse-at", WEIGHT)
    )
    graph = helper.make_graph([constant("in-node"), loop], "g", [], [], initializer=[outside("w", "a/init", WEIGHT)])
    graph.sparse_initializer.append(sparse)
    stale = outside("s", "no-longer-outside", WEIGHT)
    stale.data_location = TensorProto.DEFAULT
    graph.initializer.append(stale)
    made = helper.make_model(graph)
    made.functions.add(name="f", domain="d").node.append(constant("in-function"))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    assert external_files(tmp_path / "m.onnx") == (
        "a/init", "branch-init", "in-branch", "in-function", "in-node", "sparse-at", "sparse-values",
    )  # fmt: skip


@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin",
        "parts/../../secret.bin",
        "parts/..",
        "..",
        ".",
        "",
        "/etc/hostname",
        "..\\secret.bin",
        "parts\\w.bin",
        "w.bin\x00.txt",
        "w\n.bin",
        "\x1b[2Kw.bin",
        "link.bin",  # a link to a file elsewhere
        "linked/w.bin",  # a folder that lies elsewhere
        "loop.bin",
    ],
)
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    home = tmp_path / "home"
    (home / "parts").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for place in (tmp_path / "secret.bin", elsewhere / "w.bin", home / "parts" / "w.bin"):
        place.write_bytes(WEIGHT.tobytes())
    (home / "link.bin").symlink_to(tmp_path / "secret.bin")
    (home / "linked").symlink_to(elsewhere)
    (home / "loop.bin").symlink_to("loop.bin")
    with pytest.raises(ArtifactError) as caught:
        weight_files(naming(home, location))
    error = caught.value
    assert error.where == str(home / "foreign.onnx")
    assert "leads out of its folder" in error.message or "is missing" in error.message
    if location != "loop.bin":
        assert repr(location) in error.message and "save_as_external_data" in error.remedy


@pytest.mark.parametrize("location", ["none.bin", "parts"])
def test_a_weights_file_that_is_not_there_is_told(tmp_path: Path, location: str) -> None:
    (tmp_path / "parts").mkdir()
    with pytest.raises(ArtifactError, match=f"weights file '{location}' is missing"):
        weight_files(naming(tmp_path, location))


def test_plain_relative_names_are_taken(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "w.bin").write_bytes(WEIGHT.tobytes())
    (tmp_path / "inside.bin").symlink_to("parts/w.bin")
    for location, name in (
        ("./parts/w.bin", "parts/w.bin"),
        ("parts//w.bin", "parts/w.bin"),
        ("inside.bin", "inside.bin"),
    ):
        found = weight_files(naming(tmp_path, location))
        assert {k: v.read_bytes() for k, v in found.items()} == {name: WEIGHT.tobytes()}


@pytest.mark.parametrize("location", ["model.onnx", "Model.ONNX", "my weights.bin", ".hidden", "a/b/c.bin", "w" * 99])
def test_a_name_that_a_bundle_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path, location: str) -> None:
    path = naming(tmp_path, location)
    (tmp_path / location).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / location).write_bytes(WEIGHT.tobytes())
    np.savez(tmp_path / "d.npz", x=np.ones((2, 4), np.float32))
    (tmp_path / "pipeline.yaml").write_text(
        f"name: foreign\nstart: {{onnx: {path.name}}}\ndata: d.npz\nstages:\n  evaluate: {{device: cpu}}\n"
    )
    chain.run(load_pipeline(tmp_path / "pipeline.yaml"))
    with pytest.raises(ArtifactError, match="no name for a file in a bundle") as caught:
        make_bundle(tmp_path / "pipeline.yaml", tmp_path / "runs" / "foreign", tmp_path / "b.tar")
    assert "save_as_external_data" in caught.value.remedy
    assert not (tmp_path / "b.tar").exists()
