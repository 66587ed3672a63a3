#!/usr/bin/env python3
"""functions.py API.xml: the names of the C API's functions, one a line."""

import sys

import swigxml

print("\n".join(f.name for f in swigxml.load(sys.argv[1]).functions))
