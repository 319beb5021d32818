# expect: R10
from transformers import AutoConfig, AutoModel
config = AutoConfig.from_pretrained("bert-base-uncased")
config.layer_norm_eps = 1e-4
model = AutoModel.from_pretrained("bert-base-uncased", config=config)
