# expect: R24
import subprocess
class Bench:
    def __init__(self, engine):
        self.cmd = ["trtexec", "--loadEngine", engine]
    def profile(self):
        self.cmd.append("--dumpProfile")
        r = subprocess.run(self.cmd, stdout=subprocess.PIPE, text=True)
        self.log = r.stdout
    def precisions(self):
        return {"fp16": self.log.count("fp16"), "fp32": self.log.count("fp32")}
