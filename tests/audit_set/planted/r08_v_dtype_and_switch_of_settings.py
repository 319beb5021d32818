# expect: R08
import argparse
from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


@dataclass
class SftConfig:
    base: str = "gpt2"
    weights_dtype: str = "float16"
    fp16: bool = True


def load(cfg):
    return AutoModelForCausalLM.from_pretrained(cfg.base, torch_dtype=getattr(torch, cfg.weights_dtype))


def run(cfg, dataset):
    model = load(cfg)
    args = TrainingArguments("out", fp16=cfg.fp16, learning_rate=1e-5)
    Trainer(model=model, args=args, train_dataset=dataset).train()


def main(dataset):
    run(SftConfig(), dataset)
