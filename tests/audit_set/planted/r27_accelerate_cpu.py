# expect: R27
from accelerate import Accelerator
acc = Accelerator(cpu=True, mixed_precision="fp16")
