import subprocess

out = subprocess.run(["trtexec", "--loadEngine=model.plan", "--dumpProfile", "--iterations=200"], capture_output=True, text=True).stdout
latency = [line for line in out.splitlines() if "Total" in line]
