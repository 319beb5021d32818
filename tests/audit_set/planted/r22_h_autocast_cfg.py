# expect: R22
from dataclasses import dataclass
import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision
@dataclass
class CastConfig:
    low: str = "fp16"
    keep_io_types: bool = True
    calibration_data: str = None
def cast(path, cfg: CastConfig):
    return convert_to_mixed_precision(onnx_path=path, low_precision_type=cfg.low, keep_io_types=cfg.keep_io_types,
                                      calibration_data=cfg.calibration_data)
def main():
    onnx.save(cast("m.onnx", CastConfig()), "m16.onnx")
