"""logged_losses.py LOG.csv OUT: the losses of ckopt-run --print-loss are those of a run's log,
to the bit of f32; says how many there are."""
import csv
import struct
import sys


def single(text):
    return struct.pack("<f", float(text))


with open(sys.argv[1]) as file:
    logged = [single(row["loss"]) for row in csv.DictReader(file)]
with open(sys.argv[2]) as file:
    printed = [single(line.split()[3]) for line in file if line.startswith("step ")]
if not logged or logged != printed:
    sys.exit("%r\n%r" % (logged, printed))
print("%d losses, %d different ones" % (len(logged), len(set(logged))))
