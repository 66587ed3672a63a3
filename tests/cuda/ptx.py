"""The intermediate code (PTX) of kernels, as cuobjdump prints it: their launch bounds, and how they compute."""
import re

ARITHMETIC = re.compile(r"(?:add|sub|mul|mad|div|sqrt|fma|rcp|rsqrt)(?:\.\w+)*\.(?:f32|f64|f16|bf16)(?:x2)?$")


def read(images):
    """The kernels, {mangled: threads per block or None}, and what may change their bits, [(mangled, sentence)]."""
    threads, wrong = {}, []
    for image in images:
        name, kernel = None, False
        contracted = "--fmad false" not in image.partition("\n.version")[0]
        for number, line in enumerate(image.split("\n"), 1):
            begins = re.match(r"(?:\.\w+ )*\.(entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)", line)
            if begins:
                name, kernel = begins[2], begins[1] == "entry"
                if kernel:
                    threads.setdefault(name, None)
                    if contracted:
                        wrong.append((name, "its PTX was not made with -fmad=false"))
            bound = re.match(r"\.(?:maxntid|reqntid)\s+(.*)", line)
            if bound and kernel:
                product = 1
                for size in re.findall(r"\d+", bound[1]):
                    product *= int(size)
                threads[name] = product
            op = re.match(r"\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s[^;]*;", line)
            if not op:
                continue
            parts = op[1].split(".")
            why = next((f"with .{part}" for part in parts if part in ("ftz", "approx", "full")), None)
            if not why and ARITHMETIC.match(op[1]) and "rn" not in parts:
                why = "without .rn"
            if why:
                wrong.append((name, f'line {number} of its PTX is "{line.strip()}", {why}'))
    return threads, wrong
