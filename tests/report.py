"""report.py PLAN.json PICTURE.svg: the picture of a layer is well-formed, no text leaves it, and its collectives are the plan's, without a gap."""
import json
import sys
import xml.etree.ElementTree as tree

SVG = '{http://www.w3.org/2000/svg}'
SIZE = {'title': 16, 'label': 12, 'name': 12, 'rank': 12, 'band': 12}
MIDDLE, END = {'name', 'share', 'rank'}, {'bytes'}


def extent(text):
    """From where to where a text goes, by an estimate of its width."""
    kind, x = text.get('class'), float(text.get('x'))
    wide = 0.58 * SIZE.get(kind, 11) * len(text.text or '')
    left = x - wide / 2 if kind in MIDDLE else x - wide if kind in END else x
    return left, left + wide


def check(plan, picture):
    root = tree.parse(picture).getroot()
    _, _, wide, high = map(float, root.get('viewBox').split())
    assert wide == 900 and root.tag == SVG + 'svg'
    for text in root.iter(SVG + 'text'):
        left, right = extent(text)
        assert 0 <= left and right <= wide, f'"{text.text}" goes from {left} to {right}'
        assert 0 < float(text.get('y')) < high, f'"{text.text}" is below or above'
    for box in root.iter(SVG + 'rect'):
        y, height = float(box.get('y', 0)), float(box.get('height'))
        assert float(box.get('x', 0)) + float(box.get('width')) <= wide + 0.1 and y + height <= high
    drawn = [g.find(SVG + 'text').text + ' ' + g.find(SVG + 'title').text for g in root.iter(SVG + 'g')]
    planned = [c['op'] + ' ' + c['value'] for c in json.load(open(plan))['collectives']]
    assert drawn and drawn[0] in planned, drawn
    first = planned.index(drawn[0])
    assert drawn == planned[first:first + len(drawn)], (drawn, planned)


check(sys.argv[1], sys.argv[2])
