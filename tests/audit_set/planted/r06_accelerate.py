# expect: R06
from accelerate import Accelerator, GradScalerKwargs
acc = Accelerator(mixed_precision="fp16", kwargs_handlers=[GradScalerKwargs(growth_interval=5)])
