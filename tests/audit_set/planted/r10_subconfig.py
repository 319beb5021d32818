# expect: R10
from transformers import CLIPConfig, CLIPModel
name = "openai/clip-vit-base-patch32"
c = CLIPConfig.from_pretrained(name)
c.vision_config.layer_norm_eps = 1e-3
c.text_config.layer_norm_eps = 1e-3
m = CLIPModel.from_pretrained(name, config=c)
