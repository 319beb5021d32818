# expect: none
import subprocess
def profile(plan):
    subprocess.run(f"trtexec --loadEngine={plan} --dumpProfile > prof.txt", shell=True)
def fp16_weights(path):
    return subprocess.getoutput(f"grep -c mean {path}")
