"""copied_bytes.py LOG: copies between host and device in a stand-in's log, from the first run of a
graph to the last, by their size."""
import collections
import sys

lines = [line.split() for line in open(sys.argv[1])]
runs = [i for i, line in enumerate(lines) if line[:1] == ["cuGraphLaunch"]]
copies = collections.Counter()
for line in lines[runs[0] : runs[-1] + 1]:
    if line[0] in ("cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync"):
        copies[line[0][8:12], int(line[3])] += 1
print(len(runs), "runs")
for (way, size), count in sorted(copies.items()):
    print("%s %d times %d bytes" % (way, count, size))
print("to the host", sum(size * count for (way, size), count in copies.items() if way == "DtoH"))
