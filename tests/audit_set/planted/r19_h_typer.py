# expect: R19
import torch
import typer
app = typer.Typer()
@app.command()
def export(ckpt: str, out: str = "m.onnx", opset: int = typer.Option(16, "--opset")):
    net = torch.load(ckpt, weights_only=False)
    torch.onnx.export(net, (torch.zeros(1, 3, 64, 64),), out, opset_version=opset, dynamo=True)
