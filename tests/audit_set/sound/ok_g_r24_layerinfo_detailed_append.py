# expect: none
import subprocess
cmd = ["trtexec", "--onnx=a.onnx", "--saveEngine=a.plan"]
cmd.append("--exportLayerInfo=l.json")
cmd.append("--dumpProfile")
cmd.append("--profilingVerbosity=detailed")
log = subprocess.run(cmd, capture_output=True, text=True).stdout
print([l for l in log.splitlines() if "Half" in l])
