# expect: none
import onnx
import torch
from onnxconverter_common import float16
from torchvision.models import swin_t
OPSET = 15
BLOCK = ["ReduceMean", "Sub", "Pow", "Add", "Sqrt", "Div", "Softmax"]
def export_fp32(path):
    torch.onnx.export(swin_t().eval(), torch.randn(1, 3, 224, 224), path, opset_version=OPSET, dynamo=False)
def shrink(src, dst):
    m = float16.convert_float_to_float16(onnx.load(src), keep_io_types=True, op_block_list=BLOCK)
    onnx.save(m, dst)
def main():
    export_fp32("a.onnx")
    shrink("a.onnx", "b.onnx")
