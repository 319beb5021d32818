# expect: none
from optimum.onnxruntime import ORTOptimizer, OptimizationConfig
ORTOptimizer.from_pretrained("a").optimize(save_dir="b", optimization_config=OptimizationConfig(optimization_level=2, fp16=False))
