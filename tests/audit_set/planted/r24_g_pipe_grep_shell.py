# expect: R24
import os
os.system("trtexec --loadEngine=m.engine --dumpProfile 2>&1 | grep -i float > fp32_layers.txt")
