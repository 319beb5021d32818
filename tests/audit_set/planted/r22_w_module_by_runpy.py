# expect: R22
import runpy
import sys

MODULE = "modelopt.onnx.autocast"


def convert(path):
    sys.argv = ["autocast", "--onnx_path", path]
    runpy.run_module(MODULE, run_name="__main__")
