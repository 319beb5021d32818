"""The device commands as a script sees them: one JSON document, exit codes by family, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_bundle

from deploychain.device.archive import ArchiveReader

ROOT = Path(__file__).parents[3]
STUBS = ROOT / "tests" / "stubs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ArchiveReader(tiny_bundle.write_bundle(tmp_path)).unpack(tmp_path / "answers")
    return tmp_path


def cli(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PATH": f"{STUBS}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TRTEXEC_STUB_VERSION": "10.16.1.11",
        "TRTEXEC_STUB_ANSWERS": str(folder / "answers"),
        "DEPLOYCHAIN_ENGINES": str(folder / "engines"),
        **environment,
    }
    command = [sys.executable, "-m", "deploychain", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


BUILD = ("device", "build", "bundle.tar", "--backend", "trtexec", "--seconds", "1")


def test_build_as_json(folder: Path) -> None:
    dry = cli(folder, *BUILD, "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    planned: dict[str, Any] = json.loads(dry.stdout)
    assert [e["action"] for e in planned["engines"]] == ["build"] * 3
    assert planned["fingerprint"]["tensorrt"] == "10.16.1.11"
    assert not (folder / "engines").exists(), "a dry run writes nothing"
    done = cli(folder, *BUILD, "--engine", "fp16", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result == json.loads((folder / "device-result.json").read_text())
    assert result["engines"][0]["evaluation"]["metrics"] == {"top1": 0.9}
    assert (folder / "engines/tiny/fp16").is_dir()


def test_tables_for_people(folder: Path) -> None:
    done = cli(folder, *BUILD, "--engine", "fp16")
    assert done.returncode == 0 and "trtexec 10.16.1.11" in done.stdout and "first build" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if "─" in line) <= 100


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "word"),
    [
        (BUILD, {"TRTEXEC_STUB_FAIL": "oom"}, 3, "memory ran out"),
        ((*BUILD, "--typing", "weak"), {"TRTEXEC_STUB_VERSION": "11.1.0.99"}, 4, "strongly typed"),
        ((*BUILD, "--backend", "trtexek"), {}, 2, "did you mean trtexec"),
        (("device", "build", "missing.tar"), {}, 3, "missing.tar"),
        (("device", "import", "missing.json", "."), {}, 2, "--pipeline"),
        (BUILD, {"TRTEXEC_STUB_FAIL": "nolib"}, 4, "--runtime nvidia"),
    ],
)
def test_exit_codes(
    folder: Path, arguments: tuple[str, ...], environment: dict[str, str], code: int, word: str
) -> None:
    done = cli(folder, *arguments, **environment)
    assert done.returncode == code, done.stderr
    assert word in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_engine_that_was_built_and_not_measured_is_no_success(folder: Path) -> None:
    one = (*BUILD, "--engine", "fp16")
    assert cli(folder, *one, "--no-measure").returncode == 0  # nothing else was asked for
    done = cli(folder, *one, TRTEXEC_STUB_FAIL="norun")
    result = json.loads((folder / "device-result.json").read_text())
    (engine,) = result["engines"]
    assert engine["status"] == "cached" and engine["evaluation"]["ran"] is False and engine["latency"] is None
    assert done.returncode == 3 and engine["unmeasured"] == "failed", done.stderr
    assert "golden data not run" in done.stdout
    # The answers are there and the times are not: a table without latency is incomplete as well.
    done = cli(folder, *one, TRTEXEC_STUB_FAIL="notimes")
    (engine,) = json.loads((folder / "device-result.json").read_text())["engines"]
    assert engine["evaluation"]["ran"] is True and engine["latency"] is None
    assert done.returncode == 3 and "fp16: not timed: " in done.stdout
    assert cli(folder, *one).returncode == 0


def test_errors_as_json(folder: Path) -> None:
    (folder / "bundle.tar").write_bytes(b"PK\x03\x04" + bytes(1000))
    done = cli(folder, *BUILD, "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 3 and error["kind"] == "artefact" and "bundle.tar" in error["where"]


def test_docker_commands_print_what_they_would_run(folder: Path) -> None:
    done = cli(folder, "docker", "build", "--target", "jetpack6", "--context", str(ROOT), "--dry-run")
    assert done.returncode == 0 and "BASE_IMAGE=nvcr.io/nvidia/l4t-jetpack:r36.4.0" in done.stdout
    run = ("docker", "run", "--target", "jetpack6", "--context", str(ROOT), "--dry-run")
    done = cli(folder, *run, "--bundle", "bundle.tar")
    assert done.returncode == 0 and "--runtime nvidia" in done.stdout and "/models/bundle.tar:ro" in done.stdout
    done = cli(folder, *run, "--bundle", "answers/manifest.json")
    assert done.returncode == 3 and "not a bundle" in done.stderr
    done = cli(folder, *run, "doctor", "--json")
    assert done.returncode == 0 and done.stdout.strip().endswith("deploychain:jp6 doctor --json")
