import torch


def handle(event, scaler, optimizer):
    match event:
        case "step":
            scaler.step(optimizer)
            scaler.update()
        case None:
            pass
