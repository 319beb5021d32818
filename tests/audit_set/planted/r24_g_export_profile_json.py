# expect: R24
import json, subprocess
def profile(engine, out="profile.json"):
    subprocess.check_call(["trtexec", f"--loadEngine={engine}", f"--exportProfile={out}", "--dumpProfile", "--separateProfileRun"])
    layers = json.load(open(out))[1:]
    return [l["name"] for l in layers if "precision" in l and l["precision"] == "FP32"]
