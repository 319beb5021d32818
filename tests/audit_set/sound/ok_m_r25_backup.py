import torch
backup = {k: v.clone() for k, v in model.state_dict().items()}
model.half()
evaluate(model)
model.float()
model.load_state_dict(backup)
