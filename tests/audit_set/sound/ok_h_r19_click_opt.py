# expect: none
import click
import torch
@click.command()
@click.option("--opset", default=14, show_default=True)
@click.option("--out", default="net.onnx")
def main(opset, out):
    net = torch.jit.load("net.pt")
    _export(net, out, opset)
def _export(net, out, opset):
    torch.onnx.export(net, (torch.rand(1, 1, 28, 28),), out, opset_version=opset, dynamo=opset >= 18)
