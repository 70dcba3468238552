"""data_memory.py FOLDER COMMAND...: runs the command on 40 MB and on 240 MB of
images of zeros, and compares the anonymous memory (RssAnon, read while it runs:
what holds data holds them to the end). Compressed data without a cache must show,
or the comparison would mean nothing."""

import pathlib
import struct
import subprocess
import sys
import zipfile

MIB = 1 << 20
folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
folder.mkdir()


def head(descr, shape):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape})
    text += " " * (117 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode()


def arrays(name, samples):
    """A folder of .npy files with holes in place of zeros."""
    (folder / name).mkdir()
    for array, descr, shape, size in [
        ("images", "<f4", (samples, 1, 8, 8), 256),
        ("labels", "<i8", (samples,), 8),
    ]:
        with open(folder / name / (array + ".npy"), "wb") as out:
            out.write(head(descr, shape))
            out.truncate(128 + samples * size)


def compressed(name, samples):
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        for array, descr, shape, size in [
            ("images", "<f4", (samples, 1, 8, 8), 256),
            ("labels", "<i8", (samples,), 8),
        ]:
            with out.open(array + ".npy", "w") as member:
                member.write(head(descr, shape))
                for _ in range(samples // 1000):
                    member.write(bytes(1000 * size))


def peak(*flags):
    run = subprocess.Popen([*command, *flags], stdout=subprocess.DEVNULL)
    most = 0
    while run.poll() is None:
        try:
            with open(f"/proc/{run.pid}/status") as status:
                for line in status:
                    if line.startswith("RssAnon"):
                        most = max(most, int(line.split()[1]) * 1024)
        except OSError:
            pass
        try:
            run.wait(0.005)
        except subprocess.TimeoutExpired:
            pass
    assert run.returncode == 0, flags
    return most


arrays("small", 152000)
arrays("large", 912000)
compressed("large.npz", 912000)
small = peak(f"--data={folder}/small")
for what, flags in {
    "arrays": [f"--data={folder}/large"],
    "a cache that is made": [f"--data={folder}/large.npz", f"--data-cache={folder}/cache"],
    "a cache that is there": [f"--data={folder}/large.npz", f"--data-cache={folder}/cache"],
}.items():
    more = peak(*flags) - small
    print(f"{what}: {more / MIB:.1f} MiB more than {small / MIB:.1f}")
    if more > 64 * MIB:
        sys.exit(f"{what}: {more} bytes more")
if peak(f"--data={folder}/large.npz") - small < 128 * MIB:
    sys.exit("compressed data in memory do not show")
for path in [folder / "large.npz", *folder.glob("cache/*"), *folder.glob("*/*.npy")]:
    path.unlink(missing_ok=True)
