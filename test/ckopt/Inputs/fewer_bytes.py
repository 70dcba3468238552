"""fewer_bytes.py SMALL LARGE SHARE: the measured peak in one report is at most this share of
that in another; says both, and ends with 1 where it is not."""
import json
import sys


def peak(node):
    if not isinstance(node, dict):
        return None
    if "measured_peak" in node:
        return node["measured_peak"]
    return next((found for found in map(peak, node.values()) if found is not None), None)


small, large = (peak(json.load(open(path))) for path in sys.argv[1:3])
print("%d bytes of %d" % (small, large))
sys.exit(small > float(sys.argv[3]) * large)
