#!/usr/bin/env python3
"""Reads a page of `shardrec train --report` or `bench --report` and compares all that it shows with its JSON.

  report_page.py PAGE [FILE]     FILE: the line of JSON that the run printed; the page holds the same

The page is read as XML. Prints what it found, a line for each thing, and "FAIL: ..." for what is wrong (exit status 1).
check_document() does the same with what a browser has made of the page (tests/browser/run).
"""
import json
import math
import re
import sys
import xml.etree.ElementTree as tree

UNITS = {"": 1, "GB/s": 1, "s": 1, "ms": 1, "%": 0.01, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def member(document, pointer):
    for name in pointer.split("/")[1:]:
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def printable(text):
    """What XML cannot hold is shown as a mark."""
    return re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]", "?", text)


def says(text, value):
    """Whether a text is what people are shown of a value: rounded, with separators and a unit."""
    if value is None:
        return text == "–"
    if isinstance(value, bool):
        return text == ("yes" if value else "no")
    if isinstance(value, str):
        return text == printable(value)
    match = re.fullmatch(r"(-?[\d,]*\.?(\d*)(?:e([-+]\d+))?) ?([A-Za-z%/]*)", text)
    if not match or match[4] not in UNITS:
        return False
    shown = float(match[1].replace(",", "")) * UNITS[match[4]]
    last_digit = 10.0 ** (int(match[3] or 0) - len(match[2])) * UNITS[match[4]]
    return abs(shown - value) <= last_digit * 0.5001 + 1e-12


def check_figures(figures, document):
    """figures: (pointer, exact, text) of each <data>. Returns what is wrong."""
    wrong = []
    for pointer, exact, text in figures:
        try:
            value = member(document, pointer)
        except (KeyError, IndexError, ValueError):
            wrong.append(f"{pointer} is not in the JSON")
            continue
        same = exact == printable(value) if isinstance(value, str) else json.loads(exact) == value
        if not same:
            wrong.append(f"{pointer} has {exact}, the JSON {value}")
        if not says(text, value):
            wrong.append(f"{pointer} shows {text!r} for {value}")
    return wrong


def check_charts(charts, document):
    """charts: (caption, [(x, y, title)]) of each chart. A dot for each point that has a value, where it belongs."""
    fields = {"Loss (nats per sample)": "loss", "AUC": "auc", "Normalised entropy": "ne",
              "Samples per second": "samples_per_second"}
    wrong = []
    for caption, dots in charts:
        points = [(point["step"], point[fields[caption]]) for point in document["history"]]
        points = [(step, value) for step, value in points if value is not None]
        if len(points) != len(dots):
            wrong.append(f"{caption}: {len(dots)} dots for {len(points)} points")
            continue
        for (step, value), (_, _, title) in zip(points, dots):
            match = re.fullmatch(r"step ([\d,]+): (.+)", title)
            if not match or int(match[1].replace(",", "")) != step or not says(match[2], value):
                wrong.append(f"{caption}: {title!r} for step {step}, {value}")
        for axis, of in ((0, lambda point: point[0]), (1, lambda point: point[1])):
            least, most = min(points, key=of), max(points, key=of)
            if of(least) == of(most):
                continue
            a, b = dots[points.index(least)][axis], dots[points.index(most)][axis]
            for point, dot in zip(points, dots):
                expected = a + (b - a) * (of(point) - of(least)) / (of(most) - of(least))
                if abs(expected - dot[axis]) > 0.3:
                    wrong.append(f"{caption}: step {point[0]} is at {dot[axis]}, not at {expected}")
            if axis == 1 and b >= a:
                wrong.append(f"{caption}: more is not higher")
    return wrong


def check_bars(bars):
    """bars: of each group the parts (percent, title) of each bar. Lengths go as what their titles say."""
    wrong = []
    for group in bars:
        parts = []
        for bar in group:
            for percent, title in bar:
                match = re.search(r"(-?[\d,]*\.?\d*(?:e[-+]\d+)?) ?(%|ms|s|GB/s|[KMGT]?i?B)$", title)
                number, unit = match[1].replace(",", ""), UNITS[match[2]]
                digits = len(number.partition("e")[0].partition(".")[2])
                rounded = 0 if "e" in number else 0.5 * 10**-digits * unit  # titles are, lengths are not
                parts.append((percent, float(number) * unit, title, rounded))
        longest = max((sum(percent for percent, _ in bar) for bar in group), default=100)
        left_out = len(group) == 64  # there may be more, of which one is the longest
        if parts and (longest > 100.1 or longest < 99.9 and not left_out):
            wrong.append(f"the longest bar is {longest} % wide")
        percent, value, _, value_rounded = max(parts, default=(0, 0, "", 0))
        for part in parts:
            rounded = percent * (part[3] + value_rounded) / value if value > 0 else 0
            if value > 0 and abs(part[0] - percent * part[1] / value) > 0.01 * percent + 0.1 + rounded:
                wrong.append(f"{part[2]!r} is {part[0]} % wide; {value} is {percent} %")
    return wrong


def check_phases(bars, document):
    """The first groups of a training's page are the times of each rank."""
    wrong = []
    for group, phases in zip(bars, (document.get("phases", []), document.get("table_phases", []))):
        for rank, bar in enumerate(group if phases else []):
            expected = [(phase["name"], phase["seconds"][rank]) for phase in phases if phase["seconds"][rank] > 0]
            titles = [title for _, title in bar]
            if len(titles) != len(expected) or not all(
                    title.startswith(name + ": ") and says(title[len(name) + 2:], seconds)
                    for title, (name, seconds) in zip(titles, expected)):
                wrong.append(f"rank {rank} has {titles} for {expected}")
    return wrong


def check_pictures(titles, document):
    """titles: of the boxes in the pictures of the plan, those of a table together."""
    wrong = []
    tables = document.get("plan", {}).get("plan", {}).get("tables", [])[:40]
    if len(tables) != len(titles):
        return [f"{len(titles)} pictures of {len(tables)} tables"]
    for t, (table, shown) in enumerate(zip(tables, titles)):
        sizes = document["plan"]["tables"][t]["box_bytes"]
        boxes = [{"row": 0, "rows": table["rows"], "col": 0, "cols": table["dim"]}] if table["replicated"] else table["boxes"]
        if len(boxes) != len(shown):
            wrong.append(f"{len(shown)} boxes of table {table['name']!r}, which has {len(boxes)}")
            continue
        for box, size, title in zip(boxes, sizes, shown):
            match = re.fullmatch(r"(rank (\d+)|every rank): rows ([\d,]+) to ([\d,]+), columns ([\d,]+) to ([\d,]+), (.+)",
                                 title)
            numbers = [int(match[i].replace(",", "")) for i in range(3, 7)] if match else []
            if (numbers != [box["row"], box["row"] + box["rows"] - 1, box["col"], box["col"] + box["cols"] - 1]
                    or (match[2] or "None") != str(box.get("rank")) or not says(match[7], size)):
                wrong.append(f"{title!r} for {box} of {size} bytes")
    return wrong


def check_document(page, document):
    """page: {"figures", "charts", "bars", "pictures"} as above. Returns what is wrong."""
    wrong = check_figures(page["figures"], document) + check_charts(page["charts"], document)
    wrong += check_bars(page["bars"]) + check_phases(page["bars"], document)
    wrong += check_pictures(page["pictures"], document)
    if document.get("history") and len(page["charts"]) < 2:
        wrong.append("no charts of loss and samples/s")
    if len(page["figures"]) < 15:
        wrong.append(f"{len(page['figures'])} figures only")
    return wrong


def local(element):
    return element.tag.split("}")[-1]


def with_class(root, name):
    return [e for e in root.iter() if name in (e.get("class") or "").split()]


def text_of(element):
    return "".join(element.itertext())


def read_page(root):
    def title(element):
        return next((text_of(child) for child in element if local(child) == "title"), "")

    def width(element):
        return float(re.search(r"width:([\d.]+)%", element.get("style"))[1])

    charts = []
    for chart in with_class(root, "chart"):
        caption = next(text_of(e) for e in chart if local(e) == "figcaption")
        dots = [(*map(float, re.match(r"M(\S+) (\S+)h0", dot.get("d")).groups()), title(dot))
                for dot in with_class(chart, "dot")]
        charts.append((caption, dots))
    bars = [[[(width(part), part.get("title")) for part in next(iter(with_class(bar, "track")))]
             for bar in with_class(group, "bar")] for group in with_class(root, "bars")]
    return {"figures": [(e.get("data-json"), e.get("value"), text_of(e)) for e in root.iter() if local(e) == "data"],
            "charts": charts, "bars": bars,
            "pictures": [[title(box) for box in with_class(picture, "box")] for picture in with_class(root, "plan")]}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    root = tree.fromstring(text)
    scripts = [e for e in root.iter() if local(e) == "script"]
    wrong = []
    if [e.get("type") for e in scripts] != ["application/json"]:
        wrong.append("other scripts than the JSON")
    document = json.loads(scripts[0].text)
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as file:
            if json.load(file) != document:
                wrong.append("the JSON of the page is not the printed line")
    page = read_page(root)
    wrong += check_document(page, document)
    for element in root.iter():
        if local(element) in ("link", "img", "iframe", "object", "embed", "audio", "video", "form", "base"):
            wrong.append(f"an element {local(element)}")
        wrong += [f"an attribute {name}" for name in element.keys() if name in ("src", "href") or name.startswith("on")]
    style = "".join(text_of(e) for e in root.iter() if local(e) == "style")
    for what in ("url(", "@import"):
        if what in style:
            wrong.append(f"{what} in the style")
    if set(re.findall(r"https?://[^\"\s]*", re.sub(r"<script.*?</script>", "", text, flags=re.S))) - {
            "http://www.w3.org/2000/svg"}:
        wrong.append("an address of another place")
    for what in ("@media (prefers-color-scheme: dark)", "@media (max-width: "):
        if what not in style:
            wrong.append(f"no {what} in the style")
    if not any(e.get("name") == "viewport" and "width=device-width" in e.get("content")
               for e in root.iter() if local(e) == "meta"):
        wrong.append("no viewport")
    for section in (e for e in root.iter() if local(e) == "section"):
        print("section", next((text_of(e) for e in section if local(e) == "h2"), ""))
    for name in ("figures", "charts", "bars", "pictures"):
        print(name, len(page[name]))
    print("elements", " ".join(sorted({local(e) for e in root.iter()})))
    print("text", re.sub(r"\s+", " ", text_of(next(e for e in root.iter() if local(e) == "main"))).strip())
    for fault in wrong:
        print("FAIL:", fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
