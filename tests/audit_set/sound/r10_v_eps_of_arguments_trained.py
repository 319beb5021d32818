from dataclasses import dataclass

from transformers import AutoConfig, AutoModelForSequenceClassification


@dataclass
class FinetuneArgs:
    base: str = "bert-base-uncased"
    norm_eps: float = 1e-12
    labels: int = 3


def build(args):
    config = AutoConfig.from_pretrained(args.base, num_labels=args.labels)
    config.layer_norm_eps = args.norm_eps
    return AutoModelForSequenceClassification.from_pretrained(args.base, config=config)
