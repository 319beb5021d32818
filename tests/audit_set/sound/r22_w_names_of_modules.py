import importlib
import logging
from importlib.util import find_spec

import onnx

logger = logging.getLogger("modelopt.onnx.autocast")
LAZY = {"autocast": "modelopt.onnx.autocast", "quantise": "modelopt.onnx.quantization"}
AVAILABLE = find_spec("modelopt.onnx.autocast") is not None


def load(name):
    logger.setLevel(logging.INFO)
    return importlib.import_module(LAZY[name])


def read(path):
    return onnx.load(path)
