"""Files as people keep them: packed by gzip, with carriage returns alone, saved from a web page."""

from __future__ import annotations

import gzip
import html
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from deploychain.engine import packed
from deploychain.engine.evidence import Evidence, read_evidence
from deploychain.engine.sniff import read_file

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "engine"
CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus"
LOG = (
    "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=m.onnx --fp16\n"
    "[01/02/2024-10:00:00] [I] Precision: FP32+FP16\n"
    "[01/02/2024-10:00:00] [V] [TRT] Engine Layer Information:\n"
    "Layer(CaskConvolution): a<b>, Tactic: 0x1, x (Half[1,8]) -> y (Half[1,8])\n"
    "[01/02/2024-10:00:00] [W] [TRT] stderr is here\n"
    "[01/02/2024-10:00:00] [I] Throughput: 100 qps\n"
    "&&&& PASSED TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=m.onnx --fp16\n"
)
GRAPH = json.dumps(
    {
        "Layers": [
            {
                "Name": 'say "a" & b',
                "LayerType": "CaskConvolution",
                "Inputs": [{"Name": "i", "Dimensions": [1], "Format/Datatype": "Half"}],
                "Outputs": [{"Name": "o", "Dimensions": [1], "Format/Datatype": "Half"}],
            }
        ],
        "Bindings": ["i"],
    },
    indent=1,
)
WAYS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "returns alone": lambda raw: raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r"),
    "html": lambda raw: html.escape(raw.decode(), quote=False).encode(),
    "html, quotes too": lambda raw: html.escape(raw.decode()).encode(),
    "html, packed": lambda raw: gzip.compress(html.escape(raw.decode()).encode()),
    "returns alone, packed in two members": lambda raw: (
        gzip.compress(raw[:90].replace(b"\n", b"\r")) + gzip.compress(raw[90:].replace(b"\n", b"\r"))
    ),
}


def told(evidence: Evidence) -> tuple[object, ...]:
    document = evidence.to_json()
    runs = [{key: value for key, value in run.items() if key not in ("path", "notes")} for run in document["runs"]]
    return evidence.inputs[0].kind, document["layers"], document["summary"], runs


# Escaped without its quotes, JSON is valid and its names cannot be told from names that hold an entity.
KEPT = [(text, way) for text in (LOG, GRAPH) for way in WAYS if text is LOG or way != "html"]


@pytest.mark.parametrize(("text", "way"), KEPT, ids=lambda value: value[:9].strip())
def test_kept_in_another_way_it_says_the_same(text: str, way: str, tmp_path: Path) -> None:
    plain, kept = tmp_path / "plain", tmp_path / "kept"
    plain.write_bytes(text.encode())
    kept.write_bytes(WAYS[way](text.encode()))
    expected, found = read_evidence(plain, asked="fp16"), read_evidence(kept, asked="fp16")
    assert [layer.name for layer in found.layers] == ["a<b>" if text is LOG else 'say "a" & b']
    assert found.runs == () or [(r.status, r.throughput_qps) for r in found.runs] == [("passed", 100.0)]
    assert told(found) == told(expected)


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not at {CORPUS}")
@pytest.mark.parametrize("way", ["gzip", "returns alone"])
def test_the_whole_corpus_reads_alike(way: str, tmp_path: Path) -> None:
    files = [path for path in sorted(CORPUS.glob("*/*")) if path.is_file()]
    assert len(files) > 50
    for path in files:
        raw = path.read_bytes()
        if way != "gzip" and raw[:2] == b"\xff\xfe":
            continue  # UTF-16: not by replacing bytes
        kept = tmp_path / path.name
        kept.write_bytes(WAYS[way](raw))
        assert told(read_evidence(kept)) == told(read_evidence(path)), path.name


def test_a_carriage_return_among_line_feeds_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "l.log"
    odd = LOG.replace("a<b>", "a\rb").replace(
        "[01/02/2024-10:00:00] [I] Thr", " 50 %\r100 %\r[01/02/2024-10:00:00] [I] Thr"
    )
    path.write_bytes(odd.encode())
    (run,) = read_file(path).runs
    assert (run.status, run.throughput_qps) == ("passed", 100.0)
    assert [layer.name for layer in run.listings[0].layers] == ["a\rb"]


def test_entities_of_a_name_are_left_alone_where_the_text_is_not_escaped(tmp_path: Path) -> None:
    path = tmp_path / "l.log"
    path.write_text(LOG.replace("a<b>", "a&lt;b&gt;"))
    reading = read_file(path)
    assert reading.runs[0].listings[0].layers[0].name == "a&lt;b&gt;"
    assert not any("HTML" in note for note in reading.notes)


def test_what_was_escaped_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(html.escape(LOG))
    assert any("HTML" in note for note in read_file(path).notes)
    path.write_text(html.escape('[{"count": 3}, {"name": "a", "timeMs": 1.0}]'))
    assert read_file(path).problem == "JSON that was escaped for HTML (&quot;): save it unescaped"
    path.write_text("<!DOCTYPE html>\n<html><body>job 17 passed</body></html>\n")
    assert (read_file(path).problem or "").startswith("an HTML page")


def bomb(path: Path, size: int, head: bytes = b"") -> None:
    """``size`` MiB of blanks in a thousandth of that."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(packer.compress(head))
        for _ in range(size):
            file.write(packer.compress(b" " * (1 << 20)))
        file.write(packer.flush())


def test_a_bomb_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.json.gz"
    bomb(path, 6, b'{"Layers": [')
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("deploychain.engine.textfile.MAX_UNPACKED_WHOLE", 5 << 20)
    assert "too large to be read whole" in (read_file(path).problem or "")
    monkeypatch.setattr(packed, "MAX_UNPACKED", 4 << 20)
    assert "a gzip archive of more than 4 MiB" in (read_file(path).problem or "")


def test_a_cut_or_damaged_archive_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(LOG.encode())
    path = tmp_path / "l.gz"
    for raw in (whole[:-1], whole[:-9], whole[: len(whole) // 2], whole[:2], whole[:30] + b"\xff" * 9 + whole[39:]):
        path.write_bytes(raw)
        reading = read_file(path)
        assert (reading.kind, reading.runs) == ("other", ()) and "cut or damaged" in (reading.problem or "")
    path.write_bytes(gzip.compress(whole))
    assert "inside a gzip archive" in (read_file(path).problem or "")
    path.write_bytes(gzip.compress(b""))
    assert read_file(path).problem == "the file is empty"
