# expect: R24
import textwrap
from pathlib import Path
SCRIPT = textwrap.dedent("""\
    #!/bin/bash
    trtexec --loadEngine=$1 --dumpProfile > profile.txt
    grep -E 'Half|Float' profile.txt | sort | uniq -c
""")
def write(p):
    Path(p).write_text(SCRIPT)
