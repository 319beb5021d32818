"""Facts are read from a made-up root, in the forms that real systems write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploychain.environment import fact, gpu_name
from deploychain.machine import (
    Gpu,
    banner_version,
    find_trtexec,
    l4t_release,
    look,
    output_of,
    packaged_version,
)

TEGRA = (
    "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 2025\n"
    "# KERNEL_VARIANT: oot\n"
)


def put(root: Path, name: str, text: str | bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def orin(root: Path) -> Path:
    put(root, "etc/nv_tegra_release", TEGRA)
    put(root, "proc/device-tree/model", b"NVIDIA Jetson AGX Orin Developer Kit\0")
    put(root, "proc/meminfo", "MemTotal:       31456200 kB\nMemAvailable:   28000000 kB\nSwapTotal:      15728100 kB\n")
    put(root, "proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd fphp asimdhp asimddp\n")
    put(root, "etc/os-release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n')
    put(root, "var/lib/nvpmodel/status", "pmode:0002 fmode:quiet\n")
    put(root, "etc/nvpmodel.conf", "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=2 NAME=MODE_30W >\n")
    return root


def test_an_orin_is_recognised(tmp_path: Path) -> None:
    seen = look(orin(tmp_path), run_tools=False)
    assert (seen.l4t, seen.jetpack) == ("36.4.3", "6.2")
    assert seen.gpus == (Gpu("NVIDIA Jetson AGX Orin Developer Kit", "8.7"),)
    assert seen.power_mode == "2 (MODE_30W)"
    assert (seen.memory_mib, seen.available_mib, seen.swap_mib) == (30718, 27343, 15359)
    assert seen.system == "Ubuntu 22.04.5 LTS"
    assert "asimdhp" in seen.cpu_flags
    assert gpu_name(tmp_path) == "NVIDIA Jetson AGX Orin Developer Kit"


def test_an_unknown_l4t_is_not_called_the_nearest_jetpack(tmp_path: Path) -> None:
    put(tmp_path, "etc/nv_tegra_release", TEGRA.replace("4.3", "9.9"))
    seen = look(tmp_path, run_tools=False)
    assert seen.l4t == "36.9.9" and seen.jetpack is None
    assert seen.gpus == (Gpu("Jetson", None),)  # no device tree: the capability is not guessed


def test_an_orin_is_seen_from_a_container_without_the_release_file(tmp_path: Path) -> None:
    put(tmp_path, "proc/device-tree/model", b"NVIDIA Jetson Orin Nano\0")
    put(tmp_path, "proc/device-tree/compatible", b"nvidia,p3768-0000+p3767-0005\0nvidia,tegra234\0")
    seen = look(tmp_path, run_tools=False)
    assert seen.gpus == (Gpu("NVIDIA Jetson Orin Nano", "8.7"),) and seen.l4t is None
    assert gpu_name(tmp_path) == "NVIDIA Jetson Orin Nano"
    put(tmp_path, "proc/device-tree/compatible", b"raspberrypi,4-model-b\0brcm,bcm2711\0")
    assert look(tmp_path, run_tools=False).gpus == ()


def test_a_desktop_driver_is_read_from_the_kernel(tmp_path: Path) -> None:
    put(tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ: 1\n")
    put(
        tmp_path,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\n",
    )
    seen = look(tmp_path, run_tools=False)
    assert seen.gpus == (Gpu("NVIDIA GeForce RTX 4090"),) and seen.driver == "580.159.03"
    assert seen.l4t is None and seen.container is None
    assert gpu_name(tmp_path) == "NVIDIA GeForce RTX 4090"


def test_an_empty_root_knows_nothing(tmp_path: Path) -> None:
    seen = look(tmp_path, run_tools=False)
    assert seen.gpus == () and seen.driver is None and seen.memory_mib is None and seen.cpu_flags == frozenset()
    assert l4t_release(tmp_path) is None and gpu_name(tmp_path) is None


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --help", "8.6.1"),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v100300] [b26] # trtexec", "10.3.0.26"),
        ("docker | &&&& RUNNING TensorRT.trtexec [TensorRT v101601] [b11] # trtexec", "10.16.1.11"),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v110100] [b99] # x", "11.1.0.99"),
        ("&&&& RUNNING TensorRT.trtexec # trtexec --onnx=m.onnx", None),
        ("trtexec: error while loading shared libraries: libnvdla_compiler.so", None),
    ],
)
def test_banner(line: str, version: str | None) -> None:
    assert banner_version(f"noise\n{line}\n") == version


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_trtexec_outside_path_is_found_and_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty") + os.pathsep + "/usr/bin:/bin")
    banner = "echo '&&&& RUNNING TensorRT.trtexec [TensorRT v100300] [b26] # x'"
    tool = script(tmp_path / "usr/src/tensorrt/bin/trtexec", banner)
    assert find_trtexec(tmp_path) == tool
    seen = look(tmp_path).trtexec
    assert seen is not None and (seen.version, seen.on_path) == ("10.3.0.26", False)


def test_trtexec_that_does_not_load_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "trtexec: error while loading shared libraries: libnvdla_compiler.so: cannot open shared object file"
    script(tmp_path / "bin/trtexec", f"echo '{words}' >&2; exit 127")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin:/bin")
    seen = look(tmp_path).trtexec
    assert seen is not None and seen.version is None and seen.on_path and "libnvdla_compiler" in seen.problem


def test_nvidia_smi_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(
        tmp_path / "bin/nvidia-smi",
        'case "$1" in --query*) echo "NVIDIA H200, 9.0, 143771, 580.159.03";; '
        '*) echo "| NVIDIA-SMI 580.159.03   Driver Version: 580.159.03   CUDA Version: 13.0 |";; esac',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin:/bin")
    seen = look(tmp_path)
    assert seen.gpus == (Gpu("NVIDIA H200", "9.0", 143771),)
    assert (seen.driver, seen.driver_cuda) == ("580.159.03", "13.0")


def test_a_tool_that_hangs_is_given_up() -> None:
    assert output_of(["sleep", "30"], timeout=0.2) is None
    assert output_of(["/no/such/tool"]) is None


def test_facts_say_absent_not_nothing() -> None:
    assert fact("tensorrt") == "absent" or fact("tensorrt")[0].isdigit()
    assert fact("machine")


def test_the_build_number_that_a_banner_lacks_comes_from_the_package_list(tmp_path: Path) -> None:
    status = tmp_path / "var" / "lib" / "dpkg" / "status"
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: libnvinfer-plugin10\nVersion: 10.3.0.99-1+cuda12.5\n\n"
        "Package: libnvinfer10\nStatus: install ok installed\nVersion: 10.3.0.30-1+cuda12.5\n\n"
    )
    assert packaged_version("10.3.0", tmp_path) == "10.3.0.30"
    assert packaged_version("10.3.0.26", tmp_path) == "10.3.0.26"  # the banner told it
    assert packaged_version("8.6.2", tmp_path) == "8.6.2"  # another release lies there
    assert packaged_version("10.3.0", tmp_path / "none") == "10.3.0"
