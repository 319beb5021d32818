import torch


def in_bfloat16(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def by_setting(model, loader, optimizer, amp, dtype):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def frozen_features(features, head, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
            seen = features(x)
        loss = torch.nn.functional.cross_entropy(head(seen.float()), y)
        loss.backward()
        optimizer.step()
