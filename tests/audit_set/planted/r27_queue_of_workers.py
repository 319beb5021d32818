# expect: R27
import queue
import threading
import torch


class Worker(threading.Thread):
    def __init__(self, net, inbox, outbox):
        super().__init__(daemon=True)
        self.net, self.inbox, self.outbox = net, inbox, outbox

    def run(self):
        while (item := self.inbox.get()) is not None:
            self.outbox.put(self.net(item))


@torch.inference_mode()
def main(nets, items):
    inbox, outbox = queue.Queue(), queue.Queue()
    with torch.autocast("cuda", dtype=torch.float16):
        workers = [Worker(n.cuda().eval(), inbox, outbox) for n in nets]
        for w in workers:
            w.start()
        for it in items:
            inbox.put(it.cuda())
        return [outbox.get() for _ in items]
