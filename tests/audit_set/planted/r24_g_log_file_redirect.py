# expect: R24
import subprocess, re
def profile(engine, log):
    with open(log, "w") as f:
        subprocess.run(["trtexec", "--loadEngine=" + engine, "--dumpProfile"], stdout=f, stderr=subprocess.STDOUT, check=True)
def parse(log):
    pat = re.compile(r"(FP16|FP32|INT8)")
    counts = {}
    for line in open(log):
        m = pat.search(line)
        if m: counts[m.group(1)] = counts.get(m.group(1), 0) + 1
    return counts
if __name__ == "__main__":
    profile("x.plan", "x.log"); print(parse("x.log"))
