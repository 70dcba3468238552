"""steps_after.py CHECKPOINT N: the number of the step that is N after a checkpoint's."""
import json
import struct
import sys

data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", data[:8])
print(int(json.loads(data[8 : 8 + length])["__metadata__"]["ckopt.step"]) + int(sys.argv[2]))
