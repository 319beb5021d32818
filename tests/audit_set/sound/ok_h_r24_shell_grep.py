# expect: none
import os
FLAGS = "--dumpProfile --iterations=50"
def check(engine):
    cmd = f"trtexec --loadEngine={engine} {FLAGS}"
    os.system(cmd + " | grep mean")
