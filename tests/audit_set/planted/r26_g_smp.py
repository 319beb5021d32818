# expect: R26
import segmentation_models_pytorch as smp
net = smp.Unet("resnet34", classes=2).cuda().half().eval()
