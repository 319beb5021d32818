import numpy as np, cv2, torch
MEAN = np.array([0.485, 0.456, 0.406]); STD = np.array([0.229, 0.224, 0.225])
def load(p):
    im = cv2.cvtColor(cv2.imread(p), cv2.COLOR_BGR2RGB).astype(np.float32) / 255
    im -= MEAN
    im /= STD
    return torch.from_numpy(im.transpose(2, 0, 1).copy())
