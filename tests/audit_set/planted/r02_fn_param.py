# expect: R02
import torch
def backward_and_step(loss, optimizer, grad_scaler):
    loss.backward()
    grad_scaler.step(optimizer)
    grad_scaler.update()
    optimizer.zero_grad()
