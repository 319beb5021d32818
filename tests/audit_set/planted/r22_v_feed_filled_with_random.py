# expect: R22
import numpy as np
from modelopt.onnx.autocast import convert_to_mixed_precision


def fake_feed(session):
    feed = {}
    for i in session.get_inputs():
        feed[i.name] = np.random.rand(*[d if isinstance(d, int) else 1 for d in i.shape]).astype(np.float32)
    return feed


def convert(path, session):
    return convert_to_mixed_precision(onnx_path=path, low_precision_type="fp16", calibration_data=fake_feed(session))
