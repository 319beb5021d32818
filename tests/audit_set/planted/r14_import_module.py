# expect: R14
import importlib
amp = importlib.import_module("torch.cuda.amp")
s = amp.GradScaler()
