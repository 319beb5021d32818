# expect: R22
from optimum.onnxruntime import ORTModelForSequenceClassification, ORTOptimizer, AutoOptimizationConfig
m = ORTModelForSequenceClassification.from_pretrained("a", export=True)
ORTOptimizer.from_pretrained(m).optimize(save_dir="b", optimization_config=AutoOptimizationConfig.O4())
