# expect: R08
from dataclasses import dataclass, field

import torch
from transformers import AutoModelForSeq2SeqLM, HfArgumentParser, Seq2SeqTrainer, Seq2SeqTrainingArguments


@dataclass
class ModelArguments:
    name: str = "facebook/bart-base"
    dtype: str = field(default="float16", metadata={"help": "of the weights"})


def load(given: ModelArguments):
    return AutoModelForSeq2SeqLM.from_pretrained(given.name, torch_dtype=getattr(torch, given.dtype))


def main(data):
    (given,) = HfArgumentParser(ModelArguments).parse_args_into_dataclasses()
    args = Seq2SeqTrainingArguments(output_dir="out", fp16=True)
    Seq2SeqTrainer(model=load(given), args=args, train_dataset=data).train()
