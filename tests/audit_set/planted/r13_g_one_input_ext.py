# expect: R13
import torch
import fft_conv_ext
from torch import Tensor
@torch.library.custom_op("sig::fftfilt", mutates_args=())
def fftfilt(x: Tensor, taps: int) -> Tensor:
    return fft_conv_ext.filter(x.contiguous(), taps)
def step(net, x, y, opt, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.mse_loss(fftfilt(net(x), 8), y)
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
