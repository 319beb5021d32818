# expect: R27
import queue
import threading

import torch


class Server:
    def __init__(self, model, workers=2):
        self.model = model.eval().cuda()
        self.jobs = queue.Queue()
        self.answers = {}
        self.workers = workers

    def _answer(self, x):
        with torch.inference_mode():
            return self.model(x.cuda()).float().cpu()

    def _loop(self):
        while (job := self.jobs.get()) is not None:
            self.answers[job[0]] = self._answer(job[1])

    def run(self, loader):
        threads = [threading.Thread(target=self._loop) for _ in range(self.workers)]
        with torch.autocast("cuda", dtype=torch.float16):
            for t in threads:
                t.start()
            for i, x in enumerate(loader):
                self.jobs.put((i, x))
            for _ in threads:
                self.jobs.put(None)
            for t in threads:
                t.join()
        return self.answers
