# expect: R14
import torch.cuda as tc
s = tc.amp.GradScaler()
