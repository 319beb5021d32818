# expect: R24
import argparse, subprocess
ap = argparse.ArgumentParser(description="build an engine with TensorRT 11")
ap.add_argument("--trtexec", default="trtexec")
ap.add_argument("--extra", nargs="*", default=["--fp16", "--verbose"])
a = ap.parse_args()
subprocess.run([a.trtexec, "--onnx=a.onnx", "--saveEngine=a.plan", *a.extra])
