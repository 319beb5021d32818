# expect: R24
import re, subprocess
def trtexec(*flags):
    return subprocess.run(("trtexec",) + flags, capture_output=True, text=True, check=True).stdout
def count_half(plan):
    text = trtexec("--loadEngine=" + plan, "--dumpProfile", "--iterations=50")
    return len(re.findall(r"\bHalf\b", text))
