#!/usr/bin/env python3
"""index.py REGISTRY < METADATA: the index of a local registry of Cargo, from what `cargo metadata` says of the
crates whose .crate files are in the folder REGISTRY."""

import hashlib
import json
import pathlib
import sys


def entry(package, crate):
    dependencies = [{"name": d["name"], "req": d["req"], "features": d["features"], "optional": d["optional"],
                     "default_features": d["uses_default_features"], "target": d["target"], "kind": d["kind"] or "normal"}
                    for d in package["dependencies"]]
    return {"name": package["name"], "vers": package["version"], "deps": dependencies,
            "cksum": hashlib.sha256(crate.read_bytes()).hexdigest(), "features": package["features"], "yanked": False,
            "links": package["links"], "rust_version": package["rust_version"]}


def main():
    registry = pathlib.Path(sys.argv[1])
    for package in json.load(sys.stdin)["packages"]:
        name = package["name"]
        crate = registry / f"{name}-{package['version']}.crate"
        path = registry / "index" / name[:2] / name[2:4] / name  # of names of four letters or more
        path.write_text(json.dumps(entry(package, crate)) + "\n")


if __name__ == "__main__":
    main()
