"""Just enough of ELF (64 bits, little endian) to make a program movable.

A program from a build folder looks for libraries in that folder, by absolute
path, and where its list of folders has an empty entry, in whatever folder it is
run. `run` says itself where the libraries of the archive are. Layout: System V
ABI, chapters 4 and 5."""

import struct

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NULL, DT_NEEDED, DT_STRTAB, DT_RPATH, DT_RUNPATH = 0, 1, 5, 15, 29


def make_movable(path):
    """Empties the list of folders of `path` (DT_RPATH, DT_RUNPATH), which must
    be a program or shared library; the names of the libraries it needs."""
    data = bytearray(path.read_bytes())
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("%s is no program for this kind of machine" % path)
    table, size, count = (struct.unpack_from(form, data, at)[0] for form, at in (("<Q", 32), ("<H", 54), ("<H", 56)))
    # Type, flags, offset, address, physical address, bytes in the file.
    segments = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    entries = []
    for kind, _, start, _, _, length in segments:
        if kind == PT_DYNAMIC:
            entries = [struct.unpack_from("<qQ", data, at) for at in range(start, start + length, 16)]
    values = dict(entries)
    # The only address among them: where the names are.
    names = next((values[DT_STRTAB] - address + start for kind, _, start, address, _, length in segments
                  if kind == PT_LOAD and address <= values.get(DT_STRTAB, -1) < address + length), None)
    if names is None:
        return set()

    def name(offset):
        return bytes(data[names + offset : data.index(0, names + offset)])

    for tag in (DT_RPATH, DT_RUNPATH):
        if tag in values:
            # No other name ends like a list of folders, so none shares its bytes.
            old = name(values[tag])
            data[names + values[tag] : names + values[tag] + len(old)] = bytes(len(old))
    path.write_bytes(data)
    return {name(value).decode() for tag, value in entries if tag == DT_NEEDED}
