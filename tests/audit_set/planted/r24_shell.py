# expect: R24
import subprocess
cmd = "trtexec --onnx=model.onnx --saveEngine=model.plan --fp16 --int8 --dumpProfile | grep grid_sample"
subprocess.run(cmd, shell=True)
