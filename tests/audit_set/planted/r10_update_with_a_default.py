# expect: R10
from transformers import AutoConfig, AutoModel
def load(name, overrides={"layer_norm_eps": 1e-3}):
    config = AutoConfig.from_pretrained(name)
    config.update(overrides)
    return AutoModel.from_pretrained(name, config=config)
