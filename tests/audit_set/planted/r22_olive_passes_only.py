# expect: R22
import json

PASSES = {
    "convert": {"type": "OnnxConversion", "target_opset": 17},
    "half": {"type": "OnnxFloatToFloat16", "keep_io_types": True},
}

def write(path):
    with open(path, "w") as f:
        json.dump({"input_model": {"type": "HfModel", "model_path": "org/encoder"}, "passes": PASSES}, f)

write("olive.json")
