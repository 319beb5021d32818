# expect: R22
import subprocess
FLAGS = {"fp16": "--fp-to-fp16"}
def polygraphy(src, dst, mode="fp16"):
    return ["polygraphy", "convert", src, FLAGS[mode], "-o", dst]
def main():
    subprocess.run(polygraphy("a.onnx", "b.onnx"), check=True)
