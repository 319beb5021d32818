# expect: R24
import subprocess
from pathlib import Path
class TrtExec:
    def __init__(self, exe="trtexec"):
        self.args = [exe]
    def add(self, *flags):
        self.args.extend(flags)
        return self
    def run(self):
        return subprocess.run(self.args, check=True, capture_output=True, text=True)
def inspect(plan: Path):
    out = TrtExec().add(f"--loadEngine={plan}", "--dumpProfile", "--separateProfileRun").run()
    return [ln for ln in out.stdout.splitlines() if "Float" in ln]
