# expect: R25
import torch
from transformers import AutoModelForSequenceClassification
import modelopt.torch.quantization as mtq
def main(args, loop):
    model = AutoModelForSequenceClassification.from_pretrained(args.ckpt, torch_dtype=torch.float16).cuda()
    model = model.to(torch.float32)
    model = mtq.quantize(model, mtq.INT8_DEFAULT_CFG, loop)
