# expect: R27
import threading, torch
def work(model, x, out):
    out.append(model(x))
def run(model, x):
    out = []
    with torch.autocast("cuda", dtype=torch.float16):
        t = threading.Thread(target=work, args=(model, x, out))
        t.start(); t.join()
    return out
