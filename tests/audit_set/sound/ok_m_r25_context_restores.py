import torch
class Precision:
    def __init__(self, model):
        self.model = model
    def __enter__(self):
        self.saved = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.model.half()
        return self.model
    def __exit__(self, *exc):
        self.model.float()
        self.model.load_state_dict(self.saved)
