# expect: R01
from contextlib import contextmanager

import torch
import torch.nn.functional as F


@contextmanager
def maybe_autocast(enabled=False):
    with torch.autocast("cuda", dtype=torch.float16, enabled=enabled):
        yield


class Recogniser(torch.nn.Module):
    def score(self, speech):
        with maybe_autocast(True):
            return self.decoder(speech)

    def forward(self, speech, labels):
        return F.cross_entropy(self.score(speech), labels)
