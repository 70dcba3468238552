"""close_gradients.py A.npz B.npz TOLERANCE: every array of A has its like in B, up to TOLERANCE of
the largest number of all."""
import array
import ast
import sys
import zipfile


def arrays(path):
    """The numbers of every array of f32 or f64, by name."""
    result = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            size = int.from_bytes(data[8:10], "little")
            header = ast.literal_eval(data[10:10 + size].decode())
            numbers = array.array({"<f4": "f", "<f8": "d"}[header["descr"]])
            numbers.frombytes(data[10 + size:])
            result[name] = numbers
    return result


a, b = arrays(sys.argv[1]), arrays(sys.argv[2])
assert a.keys() == b.keys(), a.keys() ^ b.keys()
scale = max(abs(x) for numbers in b.values() for x in numbers)
worst = max(abs(x - y) for name in a for x, y in zip(a[name], b[name], strict=True))
assert scale > 0 and worst <= float(sys.argv[3]) * scale, (worst, scale)
