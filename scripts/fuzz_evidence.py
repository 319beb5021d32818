#!/usr/bin/env python3
"""Fuzz the evidence readers: no input of up to 1 MB may raise anything but the project's error, hang, or take more than
20 times its size in memory.

    python scripts/fuzz_evidence.py --minutes 10            # grammar-aware mutations of the golden files
    python scripts/fuzz_evidence.py --minutes 10 --atheris  # coverage-guided (pip install atheris)

A failing input is kept beside the report, under the folder of ``--out``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

MAX_BYTES = 1 << 20
MEMORY_FACTOR = 20
FIXED_BYTES = 3 << 20  # code, caches and records that do not depend on the input
SECONDS_PER_MB = 20.0  # CPU time under tracemalloc on a slow, shared core; without it a megabyte takes about 0.1 s

TOKENS = [
    *("&&&& RUNNING T [TensorRT v8601] # x --fp16\n", "&&&& PASSED T\n", "&&&& FAILED T\n"),
    *(
        "[03/01/2026-10:00:00] [I] ",
        "[03/01/2026-10:00:00] [V] [TRT] ",
        "[03/01/2026-10:00:00] [W] [TRT] ",
        "[I] ",
        "[TRT] [E] ",
    ),
    *(
        "=== Profile (10 iterations ) ===\n",
        "   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer\n",
        "Engine Layer Information:\n",
    ),
    *(
        "  1.0  1.0  1.0  1.0   a\n",
        "  Layer   Time (ms)   Avg. Time (ms)   Time %\n",
        "=== Build Options ===\n",
        "Precision: FP32+INT8\n",
    ),
    *(
        "Layers:\n",
        "Bindings:\n",
        "I/O Tensors:\n",
        " Name: x, IOMode: Input, DataType: Float\n",
        "Layer Information:\n",
    ),
    *(
        "Layer(NoOp): a, Tactic: 0x0, x (Half[1,2:8]) -> y (Float[1])\n",
        "Layer(A): b, Tactic: -1, in[Int8(-2)] -> out[Half(1)]\n",
    ),
    "Name: a, LayerType: T, Inputs: [ { Name: x, Dimensions: [1], Format/Datatype: Half }], Outputs: [ { Name: y, "
    "Dimensions: [1], Format/Datatype: Float }], TacticName: h884, StreamId: 0, "
    "Metadata: [ONNX Layer: a]\x1e[ONNX Layer: b]\n",
    *(
        '{"Layers": [',
        '{"Name": "a", "LayerType": "T", "Inputs": [], "Outputs": []}',
        '"Bindings": []}',
        "]",
        "}",
        "{",
        "[",
        ",",
    ),
    *(
        '[ { "count" : 3 }\n',
        ', { "name" : "a"b\\", "timeMs" : nan, "averageMs" : -nan, "percentage" : inf }\n',
        '"timeMs" : 1e999',
    ),
    *(
        '{"computeMs": 1, "latencyMs": 2}',
        '{"performance_summary": {"Latency": [1,2,3,4]}}',
        '{"polygraphy_class": "RunResults", "lst": []}',
    ),
    *(
        "==== TensorRT Engine ====\n",
        "---- 3 Layer(s) ----\n",
        "Layer 0    | a [Op: T]\n",
        "    {x [dtype=float16, shape=(1,)]}\n",
    ),
    *(
        "\x1b[31m",
        "\x00",
        "\ufeff",
        "\r",
        "\n",
        "\t",
        "'",
        '"',
        "\\",
        "\x1f",
        "\ufffd",
        "[profile 99999999999]",
        "9" * 400,
        "-",
        "1e400",
    ),
    *(
        "{ForeignNode[a...b]}",
        "PWN(PWN(a), b)",
        "Reformatting CopyNode for Input Tensor 0 to x",
        "{ Name: ",
        "}], Outputs: [",
        " -> ",
    ),
    *("] [", ", Tactic: ", "(Half[", "a" * 5000, "(" * 3000, "[[[[", '{"log":"x\\n"}\n', "2026-03-01T10:00:00Z "),
]


def seeds() -> list[bytes]:
    """The golden files, and the real corpus where it lies beside the repository."""
    folders = [ROOT / "tests" / "golden" / "engine", *(ROOT.parent / "shared" / "corpus").glob("*")]
    found = [p.read_bytes()[:200_000] for d in folders if d.is_dir() for p in sorted(d.iterdir()) if p.is_file()]
    return [*found, *(t.encode() for t in TOKENS)]


def mutate(data: bytes, pool: list[bytes], rng: random.Random) -> bytes:
    """One of the usual mutations: flip, cut, drop, repeat, splice, insert a token."""
    kind = rng.randrange(9)
    at = rng.randrange(len(data) + 1)
    if kind == 0 and data:
        made = bytearray(data)
        for _ in range(rng.randrange(1, 20)):
            made[rng.randrange(len(made))] = rng.randrange(256)
        return bytes(made)
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + data[at + rng.randrange(1, 2000) :]
    if kind == 3:
        other = rng.choice(pool)
        cut = rng.randrange(len(other) + 1)
        return data[:at] + other[cut : cut + rng.randrange(1, 20_000)] + data[at:]
    if kind == 4:
        size = rng.choice((1, 3, 10, 100, 1000))
        piece = data[at : at + size]
        return data[:at] + piece * rng.randrange(2, max(3, min(20_000, MAX_BYTES // max(1, len(piece))))) + data[at:]
    if kind == 5:
        lines = data.split(b"\n")
        rng.shuffle(lines)
        return b"\n".join(lines)
    if kind == 6:
        return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig")))
    token = rng.choice(TOKENS).encode()
    return data[:at] + token * rng.choice((1, 1, 1, 2, 50)) + data[at:]


def check(data: bytes, path: Path, measure: bool) -> tuple[str | None, float, float]:
    """What went wrong with one input, the CPU seconds, and bytes of memory per byte of input."""
    from deploychain.engine.evidence import read_evidence
    from deploychain.engine.report import build_report
    from deploychain.errors import DeploychainError

    path.write_bytes(data)
    if measure:
        tracemalloc.start()
    start = time.process_time()
    problem = None
    peak = 0
    try:
        evidence = read_evidence([path])
        if measure:  # of reading; the printed document is as long as it is
            peak = tracemalloc.get_traced_memory()[1]
        json.dumps(evidence.to_json(), allow_nan=False)
        build_report(evidence, 10)
    except DeploychainError:
        pass
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:300]
    seconds = time.process_time() - start
    if measure:
        tracemalloc.stop()
    size = max(1, len(data))
    if problem is None and seconds > SECONDS_PER_MB * max(0.25, size / MAX_BYTES):
        problem = f"took {seconds:.1f} s for {size} bytes"
    if problem is None and peak > FIXED_BYTES + MEMORY_FACTOR * size:
        problem = f"took {peak} bytes of memory for {size} bytes"
    return problem, seconds, max(0, peak - FIXED_BYTES) / size


def run_random(minutes: float, seed: int, out: Path) -> int:
    rng = random.Random(seed)
    pool = seeds()
    stop = time.monotonic() + minutes * 60
    count = failures = 0
    worst_time = worst_memory = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        while time.monotonic() < stop:
            data = rng.choice(pool)
            for _ in range(rng.randrange(1, 6)):
                data = mutate(data, pool, rng)[:MAX_BYTES]
            problem, seconds, factor = check(data, path, measure=count % 4 == 0)
            count += 1
            if seconds > worst_time and count % 4 != 1:  # without tracemalloc
                worst_time = seconds
                out.mkdir(parents=True, exist_ok=True)
                (out / f"slowest-{seed}").write_bytes(data)
            worst_memory = max(worst_memory, factor)
            if problem:
                failures += 1
                out.mkdir(parents=True, exist_ok=True)
                (out / f"failure-{seed}-{count}").write_bytes(data)
                print(f"input {count}: {problem}", flush=True)
    print(
        f"{count} inputs in {minutes:g} min (seed {seed}): {failures} failures; slowest {worst_time:.2f} s CPU, "
        f"largest memory {worst_memory:.1f} x size beyond {FIXED_BYTES >> 20} MB"
    )
    return 1 if failures else 0


def run_atheris(minutes: float, seed: int, out: Path) -> int:
    import atheris

    with atheris.instrument_imports(include=["deploychain.engine"]):
        import deploychain.engine.evidence
        import deploychain.engine.report  # noqa: F401
    folder = Path(tempfile.mkdtemp())
    path, corpus = folder / "input", folder / "corpus"
    corpus.mkdir()
    for index, data in enumerate(seeds()):
        (corpus / str(index)).write_bytes(data[:MAX_BYTES])
    out.mkdir(parents=True, exist_ok=True)

    def one(data: bytes) -> None:
        problem, _, _ = check(data, path, measure=False)
        if problem:
            raise AssertionError(problem)

    pool = seeds()

    def mutator(data: bytes, max_size: int, seed_: int) -> bytes:
        rng = random.Random(seed_)
        made = mutate(data, pool, rng) if rng.random() < 0.7 else atheris.Mutate(data, max_size)
        return bytes(made)[:max_size]

    arguments = [f"-max_total_time={int(minutes * 60)}", f"-max_len={MAX_BYTES}", f"-seed={seed}", "-rss_limit_mb=4096"]
    atheris.Setup(
        [sys.argv[0], *arguments, "-timeout=30", f"-artifact_prefix={out}/", str(corpus)], one, custom_mutator=mutator
    )
    atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "deploychain-fuzz")
    arguments = parser.parse_args()
    run = run_atheris if arguments.atheris else run_random
    return run(arguments.minutes, arguments.seed, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
