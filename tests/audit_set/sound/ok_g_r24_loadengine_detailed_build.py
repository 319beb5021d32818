# expect: none
import subprocess
V = "--profilingVerbosity=detailed"
subprocess.run(["trtexec", "--onnx=a.onnx", "--saveEngine=a.plan", V], check=True)
subprocess.run(["trtexec", "--loadEngine=a.plan", "--exportLayerInfo=l.json"], check=True)
