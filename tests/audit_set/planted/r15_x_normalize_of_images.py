# expect: R15
import torch


class Embedder:
    def __init__(self, model, normalize):
        self.model, self.normalize = model.half(), normalize

    @torch.inference_mode()
    def embed(self, images):
        images = images.cuda().half()
        return self.model(self.normalize(images))
