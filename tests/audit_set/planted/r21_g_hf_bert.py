# expect: R21
import torch
from transformers import AutoModel
net = AutoModel.from_pretrained("bert-base-uncased", torch_dtype=torch.float16).cuda().eval()
ids = torch.ones(1, 16, dtype=torch.long).cuda()
torch.onnx.export(net, (ids,), "bert.onnx", opset_version=13, dynamo=False, input_names=["ids"], output_names=["h"])
