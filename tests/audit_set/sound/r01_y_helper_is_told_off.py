from contextlib import contextmanager

import torch
import torch.nn.functional as F
from speech.amp import autocast


@contextmanager
def maybe_autocast(enabled=True):
    with torch.autocast("cuda", dtype=torch.float16, enabled=enabled):
        yield


class Recogniser(torch.nn.Module):
    def encode(self, speech):
        with autocast(False):
            return self.encoder(speech)

    def score(self, speech):
        with maybe_autocast(False):
            return self.decoder(speech)

    def forward(self, speech, labels):
        return F.cross_entropy(self.encode(speech), labels) + F.cross_entropy(self.score(speech), labels)
