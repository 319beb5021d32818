# expect: R15
import torch, cv2
mean = torch.FloatTensor([0.485, 0.456, 0.406])
std = torch.FloatTensor([0.229, 0.224, 0.225])
def load(p):
    im = cv2.cvtColor(cv2.imread(p), cv2.COLOR_BGR2RGB)
    im = torch.from_numpy(im.transpose((2, 0, 1))).float() / 255
    im = im - mean
    im = im / std
    return im
