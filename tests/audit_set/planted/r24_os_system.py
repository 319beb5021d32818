# expect: R24
import os


def profile(onnx, engine):
    os.system(f"trtexec --onnx={onnx} --saveEngine={engine} --dumpProfile --separateProfileRun > log.txt")
    with open("log.txt") as f:
        return [line for line in f if "kFLOAT" in line]
