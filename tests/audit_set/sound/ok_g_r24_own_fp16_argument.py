# expect: none
"""Engines for TensorRT 11: the graph is converted before."""
import argparse, subprocess
ap = argparse.ArgumentParser()
ap.add_argument("--fp16", action="store_true", help="use the half graph")
a = ap.parse_args()
subprocess.run(["trtexec", "--onnx=" + ("m.fp16.onnx" if a.fp16 else "m.onnx"), "--saveEngine=m.plan"])
