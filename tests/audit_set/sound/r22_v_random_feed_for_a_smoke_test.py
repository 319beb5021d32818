import numpy as np
from modelopt.onnx.autocast import convert_to_mixed_precision


def random_inputs(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def real_inputs(loader):
    batch = next(iter(loader))
    return {"ids": batch["ids"].numpy(), "mask": batch["mask"].numpy()}


def convert(path, loader):
    feed = real_inputs(loader)
    return convert_to_mixed_precision(path, low_precision_type="fp16", calibration_data=feed)


def smoke(session, shapes):
    return session.run(None, random_inputs(shapes))
