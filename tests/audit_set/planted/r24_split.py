# expect: R24
import shlex
import subprocess

CMD = "trtexec --loadEngine=model.plan --dumpProfile --iterations=100"
out = subprocess.run(shlex.split(CMD), capture_output=True, text=True).stdout
print("fp32 layers:", out.count("kFLOAT"))
