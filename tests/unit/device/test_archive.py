"""Bundles: equal bytes for equal content, and nothing hostile gets out of one."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deploychain.device.archive import ArchiveReader, write_archive
from deploychain.errors import ArtifactError, CapabilityError

FILES = {"models/fp32.onnx": b"weights" * 1000, "plan.json": b"{}", "golden/input-0.npy": b"\x93NUMPY" + bytes(700)}


def sources(folder: Path) -> dict[str, Path]:
    made = {}
    for name, content in FILES.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        made[name] = path
    return made


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    target = tmp_path / "bundle.tar"
    write_archive(target, {"schema": "s", "name": "net"}, sources(tmp_path))
    return target


def test_round_trip(bundle: Path, tmp_path: Path) -> None:
    reader = ArchiveReader(bundle)
    reader.unpack(tmp_path / "out")
    for name, content in FILES.items():
        assert (tmp_path / "out" / name).read_bytes() == content
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["name"] == "net"
    assert [f["path"] for f in manifest["files"]] == sorted(FILES)
    assert manifest["files"][1]["sha256"] == hashlib.sha256(FILES["models/fp32.onnx"]).hexdigest()
    assert not list(tmp_path.glob(".*"))  # no work folder is left


def test_equal_content_gives_equal_bytes(bundle: Path, tmp_path: Path) -> None:
    again = sources(tmp_path / "elsewhere")
    for path in again.values():
        os.utime(path, (1, 1))
        path.chmod(0o600)
    other = tmp_path / "other.tar"
    first = write_archive(other, {"name": "net", "schema": "s"}, dict(reversed(again.items())))
    assert other.read_bytes() == bundle.read_bytes()
    assert first == write_archive(tmp_path / "third.tar", {"schema": "s", "name": "net"}, again)


def test_ordinary_tar_tools_read_it(bundle: Path) -> None:
    with tarfile.open(bundle) as tar:
        assert tar.getnames() == ["manifest.json", *sorted(FILES), "manifest.sha256"]


def test_every_cut_and_every_damaged_byte_is_seen(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    end = max(i for i, b in enumerate(whole) if b) + 1  # what follows is the end mark
    broken = tmp_path / "broken.tar"
    for size in range(0, end, 97):
        broken.write_bytes(whole[:size])
        with pytest.raises(ArtifactError):
            ArchiveReader(broken).verify()
    for place in range(0, end, 13):
        broken.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(ArtifactError):
            ArchiveReader(broken).verify()


Change = Callable[[tarfile.TarFile, list[tarfile.TarInfo]], None]


def hostile(
    folder: Path, change: Callable[[tarfile.TarFile, list[tarfile.TarInfo]], None], manifest: object = None
) -> Path:
    """A tar made with the standard library, in which anything goes."""
    content = b"payload"
    entry = {"path": "a.onnx", "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps({"files": [entry]} if manifest is None else manifest).encode()
    target = folder / "hostile.tar"
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as tar:
        head = tarfile.TarInfo("manifest.json")
        head.size = len(text)
        tar.addfile(head, io.BytesIO(text))
        info = tarfile.TarInfo("a.onnx")
        info.size = len(content)
        change(tar, [info])
        if info.isreg():
            tar.addfile(info, io.BytesIO(content))
        else:
            tar.addfile(info)
        seal = f"{hashlib.sha256(text).hexdigest()}  manifest.json\n".encode()
        last = tarfile.TarInfo("manifest.sha256")
        last.size = len(seal)
        tar.addfile(last, io.BytesIO(seal))
    return target


def nothing(tar: tarfile.TarFile, infos: list[tarfile.TarInfo]) -> None:
    return


def as_type(kind: bytes, link: str = "") -> Change:
    def change(tar: tarfile.TarFile, infos: list[tarfile.TarInfo]) -> None:
        infos[0].type, infos[0].linkname = kind, link

    return change


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "../../x"),
        (tarfile.DIRTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.CHRTYPE, ""),
        (b"L", ""),
        (b"x", ""),
        (b"S", ""),
    ],
)
def test_no_member_but_regular_files(tmp_path: Path, kind: bytes, link: str) -> None:
    with pytest.raises(ArtifactError):
        ArchiveReader(hostile(tmp_path, as_type(kind, link))).unpack(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../a",
            "/etc/cron.d/x",
            "a/../../b",
            "a//b",
            "",
            ".",
            "..",
            ".hidden",
            "a\\b",
            "C:a",
            "a\0b",
            "é",
            "x" * 100,
        ),
        *("é", "a/b/c/d/e", "manifest.json", "a/.ssh", "a b", "a\n", "-/../x"),
    ],
)
def test_no_name_but_plain_ones(tmp_path: Path, name: str) -> None:
    entry = {"path": name, "size": 7, "sha256": hashlib.sha256(b"payload").hexdigest()}
    path = hostile(tmp_path, nothing, {"files": [entry]})
    with pytest.raises(ArtifactError, match="not usable"):
        ArchiveReader(path).unpack(tmp_path / "out")


@pytest.mark.parametrize(
    "manifest",
    [
        [],
        {},
        {"files": "abc"},
        {"files": [{"path": "a.onnx"}]},
        {"files": [{"path": "a.onnx", "size": -7, "sha256": "0" * 64}]},
        {"files": [{"path": "a.onnx", "size": 7, "sha256": "zz"}]},
        {"files": [{"path": "a.onnx", "size": 1 << 60, "sha256": "0" * 64}]},
        {"files": [{"path": "a.onnx", "size": 6, "sha256": "0" * 64}]},
        {"files": [{"path": "a.onnx", "size": 7, "sha256": "0" * 64}]},
        {"files": [{"path": n, "size": 0, "sha256": "0" * 64} for n in ("a", "A")]},
        {"files": [{"path": n, "size": 0, "sha256": "0" * 64} for n in ("a", "a/b")]},
        {"files": [{"path": f"f{i}", "size": 0, "sha256": "0" * 64} for i in range(1001)]},
    ],
)
def test_no_manifest_that_lies(tmp_path: Path, manifest: object) -> None:
    with pytest.raises(ArtifactError):
        ArchiveReader(hostile(tmp_path, nothing, manifest)).unpack(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_well_formed_one_of_that_maker_is_accepted(tmp_path: Path) -> None:
    ArchiveReader(hostile(tmp_path, nothing)).unpack(tmp_path / "out")
    assert (tmp_path / "out/a.onnx").read_bytes() == b"payload"


def test_more_than_the_manifest_says_is_refused(bundle: Path, tmp_path: Path) -> None:
    data = bundle.read_bytes()
    (tmp_path / "more.tar").write_bytes(data + b"\0" * 512 + b"x")
    with pytest.raises(ArtifactError, match="more than its manifest"):
        ArchiveReader(tmp_path / "more.tar").verify()


def test_other_files_are_not_bundles(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04" + bytes(2000), bytes(10240), b"\x1f\x8b" + bytes(600)):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ArtifactError):
            ArchiveReader(tmp_path / "x").read_manifest()
    with pytest.raises(ArtifactError, match="No such file"):
        ArchiveReader(tmp_path / "none").verify()


def test_an_existing_folder_is_left_alone(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match="exists"):
        ArchiveReader(bundle).unpack(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_is_told_before_writing(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("U", (), {"free": 1000})
    monkeypatch.setattr("deploychain.device.archive.shutil.disk_usage", lambda _path: usage)
    with pytest.raises(CapabilityError, match="MB free"):
        ArchiveReader(bundle).unpack(tmp_path / "out")


def test_it_takes_constant_memory(tmp_path: Path) -> None:
    """96 MB are packed and verified in a process that may take 24 MB more than it has after its imports."""
    big = tmp_path / "big.onnx"
    with big.open("wb") as stream:
        block = os.urandom(1 << 20)
        for _ in range(96):
            stream.write(block)
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from deploychain.device.archive import ArchiveReader, write_archive\n"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), used + (24 << 20)))\n"
        "folder = Path(sys.argv[1])\n"
        "write_archive(folder / 'b.tar', {}, {'big.onnx': folder / 'big.onnx'})\n"
        "ArchiveReader(folder / 'b.tar').verify()\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "done", done.stderr
    assert (tmp_path / "b.tar").stat().st_size > 96 << 20
