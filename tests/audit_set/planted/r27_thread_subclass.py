# expect: R27
import threading, torch
class Worker(threading.Thread):
    def __init__(self, model, q):
        super().__init__()
        self.model, self.q = model, q
        self.out = []
    def run(self):
        for x in self.q:
            self.out.append(self.model(x))
def main(model, xs):
    w = Worker(model, xs)
    with torch.autocast("cuda", dtype=torch.float16):
        w.start()
        w.join()
    return w.out
