from transformers import AutoConfig, AutoModel
config = AutoConfig.from_pretrained("bert-base-uncased")
config.layer_norm_eps = 1e-12
config.num_labels = 3
m = AutoModel.from_pretrained("bert-base-uncased", config=config)
