"""fewer_bytes.py SMALL LARGE SHARE: the measured peak in one report is at most this share of
that in another; says both, and ends with 1 where it is not."""
import json
import sys

small, large = (json.load(open(path))["measured_peak"] for path in sys.argv[1:3])
print("%d bytes of %d" % (small, large))
sys.exit(small > float(sys.argv[3]) * large)
