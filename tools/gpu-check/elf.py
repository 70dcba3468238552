# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Just enough of ELF (64 bits, little endian) to make a program movable.

A program from a build folder looks for libraries in that folder, by absolute
path, and where its list of folders has an empty entry, in whatever folder it is
run. `run` says itself where the libraries of the archive are. Layout: System V
ABI, chapters 4 and 5."""

import struct

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 14, 15, 29


def make_movable(path):
    """Empties the list of folders of `path` (DT_RPATH, DT_RUNPATH), which must
    be a program or shared library; the name that it is opened by (None for a
    program) and the names of the libraries it needs."""
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
        return None, set()

    def name(offset):
        return bytes(data[names + offset : data.index(0, names + offset)])

    for tag in (DT_RPATH, DT_RUNPATH):
        if tag in values:
            # No other name ends like a list of folders, so none shares its bytes.
            old = name(values[tag])
            data[names + values[tag] : names + values[tag] + len(old)] = bytes(len(old))
    path.write_bytes(data)
    own = name(values[DT_SONAME]).decode() if DT_SONAME in values else None
    return own, {name(value).decode() for tag, value in entries if tag == DT_NEEDED}
