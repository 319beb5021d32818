import torch


def save(model, optimizer, scaler, path):
    state = {}
    state["model"] = model.state_dict()
    state["optimizer"] = optimizer.state_dict()
    state["scaler"] = scaler.state_dict()
    torch.save(state, path)


def step(loss, optimizer, scaler):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
