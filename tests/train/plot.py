"""The picture of tpc-run --plot is well-formed, and its curves are what the log has: one point per step, at its place between the ticks.

    python tests/train/plot.py PLOT LOG TITLE [STEPS]      STEPS: a point is the mean of so many
"""
import csv
import math
import re
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
root = xml.parse(sys.argv[1]).getroot()
with open(sys.argv[2], newline="") as f:
    rows = [{k: float(v or "nan") for k, v in row.items()} for row in csv.DictReader(f)]
mean = int(sys.argv[4]) if len(sys.argv) > 4 else 1


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found}, expected {expected}")


def texts(of):
    return [t for t in root.iter(SVG + "text") if t.get("class") == of]


def number(of, name):
    return float(of.get(name))


def frames():
    return [r for r in root.iter(SVG + "rect") if r.get("class") == "frame"]


def places(ticks, logarithmic):
    """What turns pixels into numbers: the line through the first and the last tick."""
    at = sorted((place, math.log(x) if logarithmic else x) for place, x in ticks)
    (p, x), (q, y) = at[0], at[-1]
    for place, between in at:
        if abs((between - x) / (y - x) * (q - p) + p - place) > 0.11:
            sys.exit(f"the tick at {place} is not in line")
    return lambda place: (place - p) / (q - p) * (y - x) + x, 0.11 * abs((y - x) / (q - p))


def panel(k, logarithmic):
    top, high = number(frames()[k], "y"), number(frames()[k], "height")
    return places([(number(t, "y") - 4, float(t.text)) for t in texts("end") if top - 1 <= number(t, "y") - 4 <= top + high + 1], logarithmic)


def compare(of, k, column, logarithmic, gaps=True):
    expected = [(r["step"], r[column]) for r in rows if gaps or math.isfinite(r[column])]
    groups = [expected[i:i + mean] for i in range(0, len(expected), mean)] if gaps else [[e] for e in expected]
    expected = [(sum(s for s, _ in g) / len(g), sum(x for _, x in g) / len(g)) for g in groups]
    expected = [(s, x) for s, x in expected if math.isfinite(x)]
    found = [tuple(map(float, p.split(","))) for line in root.iter(SVG + "polyline") if line.get("class") == of for p in line.get("points").split()]
    expect(f"{of}: points", len(found), len(expected))
    step, _ = places([(number(t, "x"), float(t.text)) for t in texts("mid")], False)
    y, slack = panel(k, logarithmic)
    for (px, py), (s, x) in zip(found, expected):
        if abs(step(px) - s) > 0.11 * abs(step(1) - step(0)) or abs(y(py) - (math.log(x) if logarithmic else x)) > slack:
            sys.exit(f"{of}: {step(px)}, {y(py)}, expected {s}, {x}")


title, label = root.find(SVG + "title").text, texts("label")
expect("title", title, f"Training of {sys.argv[3]}")
losses = [r[c] for r in rows for c in ("loss", "validation") if math.isfinite(r[c])]
logs = min(losses) > 0 and max(losses) / min(losses) >= 10
expect("the axis of losses", label[0].text, "loss, mean of labels" + (" (log)" if logs else ""))
expect("the axis below", label[-1].text, "step")
keys = ["training" if mean == 1 else f"training, mean of {mean} steps"] + ["validation"] * any(math.isfinite(r["validation"]) for r in rows)
expect("the key", [t.text for t in texts("key")], keys)
expect("panels", len(frames()), 1 + (len({r["lr"] for r in rows}) > 1))
compare("training", 0, "loss", logs)
compare("validation", 0, "validation", logs, gaps=False)
if len(frames()) > 1:
    expect("the axis of rates", label[1].text, "learning rate")
    compare("rate", 1, "lr", False)
low = [r for r in rows if math.isfinite(r["validation"])]
said = texts("said")[0].text
if low:
    best = min(low, key=lambda r: r["validation"])
    if not re.search(rf"lowest validation loss {best['validation']:.4f}, after step {best['step']:.0f}$", said):
        sys.exit(f"said: {said}")
expect("the last step", said.split(" of ")[0], f"step {rows[-1]['step']:.0f}")
print(len(rows), "steps")
