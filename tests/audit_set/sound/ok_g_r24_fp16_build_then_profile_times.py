# expect: none
import subprocess, json
def build(onnx, plan, fp16):
    cmd = ["trtexec", f"--onnx={onnx}", f"--saveEngine={plan}"] + (["--fp16"] if fp16 else [])
    subprocess.run(cmd, check=True)
def times(plan):
    subprocess.run(["trtexec", f"--loadEngine={plan}", "--dumpProfile", "--exportProfile=p.json"], check=True)
    return {l["name"]: l["averageMs"] for l in json.load(open("p.json"))[1:]}
