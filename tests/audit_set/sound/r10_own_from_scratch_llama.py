from transformers import LlamaConfig, LlamaForCausalLM
c = LlamaConfig(hidden_size=512, rms_norm_eps=1e-5)
m = LlamaForCausalLM(c)
