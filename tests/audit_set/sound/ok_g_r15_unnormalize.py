import torch
class Un:
    def __init__(self, mean, std):
        self.mean, self.std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)
    def __call__(self, x):
        return x * self.std + self.mean
