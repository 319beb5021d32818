# expect: R10
from transformers import AutoConfig, AutoModelForCausalLM
NAME = "gpt2"
conf = AutoConfig.from_pretrained(NAME)
conf.update({"layer_norm_epsilon": 1e-3})
m = AutoModelForCausalLM.from_pretrained(NAME, config=conf)
