# expect: R28
import torch
import torch.nn.functional as F


def extra_loss(decoder, feats, x):
    return F.l1_loss(decoder(feats), x)


def train(encoder, classifier, decoder, loader, warm=2000):
    opt = torch.optim.AdamW([*encoder.parameters(), *classifier.parameters()])
    opt_dec = torch.optim.AdamW(decoder.parameters())
    scaler = torch.amp.GradScaler("cuda")
    step = 0
    for x, y in loader:
        x = x.cuda()
        opt.zero_grad()
        opt_dec.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            feats = encoder(x)
            loss = F.cross_entropy(classifier(feats), y.cuda())
            if step > warm:
                loss = loss + extra_loss(decoder, feats, x)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.step(opt_dec)
        scaler.update()
        step += 1
