import cv2
import numpy as np

MEAN = np.array([0.4, 0.4, 0.4], dtype=np.float32)
STD = np.array([0.2, 0.2, 0.2], dtype=np.float32)


def triple(paths):
    frames = [cv2.imread(paths[0]), cv2.imread(paths[1]), cv2.imread(paths[2])]
    x = np.stack(frames, axis=0).astype(np.float32) / 255
    return (x - MEAN) / STD
