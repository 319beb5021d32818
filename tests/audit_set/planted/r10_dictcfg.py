# expect: R10
from transformers import BertConfig, BertForSequenceClassification
overrides = {"num_labels": 4, "layer_norm_eps": 1e-3}
model = BertForSequenceClassification.from_pretrained("bert-base-cased", **overrides)
