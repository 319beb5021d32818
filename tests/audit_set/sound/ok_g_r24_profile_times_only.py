# expect: none
import re, subprocess
def slowest(plan):
    out = subprocess.run(["trtexec", "--loadEngine=" + plan, "--dumpProfile", "--separateProfileRun"], capture_output=True, text=True).stdout
    rows = [l.split() for l in out.splitlines() if re.search(r"\d+\.\d+\s+\d+\.\d+", l)]
    return sorted(rows, key=lambda r: float(r[-3]), reverse=True)[:10]
