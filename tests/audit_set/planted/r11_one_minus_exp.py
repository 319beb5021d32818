# expect: R11
import torch


def odds(model, tokens, labels):
    with torch.autocast("cuda", dtype=torch.float16):
        logps = torch.log_softmax(model(tokens), -1).gather(-1, labels).mean(-1)
        return logps - torch.log(1 - torch.exp(logps))
