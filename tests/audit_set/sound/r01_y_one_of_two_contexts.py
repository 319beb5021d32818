import torch
import torch.nn.functional as F


class Codec:
    def encode(self, audio):
        grad = torch.enable_grad() or torch.autocast("cuda", dtype=torch.float16)  # the first of the two
        with grad:
            return self.encoder(audio)

    def loss(self, audio, labels):
        return F.cross_entropy(self.encode(audio), labels)
