import torch


class Tagger(torch.nn.Module):
    def __init__(self, normalize, encoder):
        super().__init__()
        self.normalize = normalize
        self.encoder = encoder

    def forward(self, features, lengths):
        features, lengths = self.normalize(features, lengths)
        return self.encoder(features, lengths)

    def vectors(self, queries):
        queries = queries.half()
        return normalize(self.encoder(queries.half()))

    def tag(self, features, lengths):
        return self.forward(features.half(), lengths)


def normalize(vectors):
    return vectors / vectors.norm(dim=-1, keepdim=True)
