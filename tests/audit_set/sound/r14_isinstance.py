import torch
def save(scaler):
    if isinstance(scaler, torch.cuda.amp.GradScaler) or isinstance(scaler, torch.amp.GradScaler):
        return scaler.state_dict()
