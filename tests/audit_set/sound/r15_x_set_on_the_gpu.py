import torch
from torch.utils.data import Dataset


class Views(Dataset):
    """The whole set is on the GPU and is indexed by the trainer itself."""

    def __init__(self, views, poses):
        self.views = torch.stack(views).float().cuda()
        self.poses = poses.to("cuda")

    def __len__(self):
        return len(self.views)

    def __getitem__(self, i):
        return self.views[i], self.poses[i]


def train(model, views, poses, optimizer, steps):
    data = Views(views, poses)
    for step in range(steps):
        view, pose = data[step % len(data)]
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(pose), view).backward()
        optimizer.step()
