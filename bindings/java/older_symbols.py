#!/usr/bin/env python3
"""Lets a shared library run with an older libstdc++, where that has the same functions.

A library is bound to the version of each symbol that the libstdc++ it was linked with calls its
default. A libstdc++ that gives a symbol a new version keeps the old one beside it. This program binds
all symbols of the version NEWER to the version OLDER, which the library must need too, and refuses
where this machine's libstdc++ lacks one of them in OLDER.

Debian's libgloo needs it: condition_variable::wait has the version GLIBCXX_3.4.30 there, and
GLIBCXX_3.4.11 in every libstdc++ since 2009. They differ in what happens to a thread that is cancelled
(pthread_cancel) while it waits, which nobody does.

Usage: older_symbols.py FILE NEWER OLDER      changes FILE; prints the symbols
"""
import re
import struct
import subprocess
import sys


def command(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def section(path, name):
    """Offset and size, in the file."""
    for line in command("readelf", "-SW", path).splitlines():
        found = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+[0-9a-f]+\s+([0-9a-f]+)\s+([0-9a-f]+)", line)
        if found and found[1] == name:
            return int(found[2], 16), int(found[3], 16)
    sys.exit(f"{path}: no section {name}")


def needed_versions(data, start, strings):
    """Offsets of the entries of .gnu.version_r, by version: 32-bit hash, 16-bit flags, 16-bit index,
    32-bit name, 32-bit distance to the next; one list per library."""
    found = {}
    library = start
    while True:
        _, count, _, first, following = struct.unpack_from("<HHIII", data, library)
        entry = library + first
        for _ in range(count):
            _, _, _, name, distance = struct.unpack_from("<IHHII", data, entry)
            end = data.index(b"\0", strings + name)
            found[data[strings + name:end].decode()] = entry
            entry += distance
        if following == 0:
            return found
        library += following


def main():
    path, newer, older = sys.argv[1:]
    symbols = re.findall(rf"\sU (\S+)@{re.escape(newer)}$", command("nm", "-D", path), re.M)
    host = command("c++", "-print-file-name=libstdc++.so.6").strip()
    offered = set(re.findall(rf"\sT (\S+)@@?{re.escape(older)}$", command("nm", "-D", host), re.M))
    for symbol in symbols:
        if symbol not in offered:
            sys.exit(f"{path} needs {symbol}@{newer}, and libstdc++ has none of version {older}")
    with open(path, "rb") as file:
        data = bytearray(file.read())
    strings, _ = section(path, ".dynstr")
    entries = needed_versions(data, section(path, ".gnu.version_r")[0], strings)
    if newer not in entries or older not in entries:
        sys.exit(f"{path} does not need both {newer} and {older}")
    # The index stays: the symbols keep theirs, and now mean the older version.
    hash_of, _, _, name, _ = struct.unpack_from("<IHHII", data, entries[older])
    struct.pack_into("<I", data, entries[newer], hash_of)
    struct.pack_into("<I", data, entries[newer] + 8, name)
    with open(path, "wb") as file:
        file.write(data)
    print(f"{path}: {newer} is {older} now: {' '.join(symbols)}")


if __name__ == "__main__":
    main()
