"""page.py PLAN.json PAGE.html BYTES [TRACE.json]: the numbers of a report page equal the plan's; it has fewer bytes, closes what it opens and needs
no network. TRACE: every rank's line is what it measured, on the tab of the workload with these sizes."""
import html.parser
import json
import re
import sys

VOID = {'meta', 'wbr', 'input', 'br', 'td', 'th', 'tr', 'p', 'li', 'html', 'link'}  # and those whose end may be left out


class Page(html.parser.HTMLParser):
    """The <data> values of each section, each with the classes that are open around it; words of the page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.data, self.ids, self.links, self.section = [], {}, set(), set(), ''
        self.folds = []  # of each, how many nodes and reshards it shows
        self.feed(text)
        assert not self.open, f'not closed: {self.open}'

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == 'section':
            self.section = attrs.get('id') or attrs['class']
        if 'id' in attrs:
            assert attrs['id'] not in self.ids, attrs['id']
            self.ids.add(attrs['id'])
        if 'href' in attrs:
            self.links.add(attrs['href'])
        if tag == 'data':
            classes = ' '.join(c for _, c in self.open).split()
            self.data.setdefault(self.section, []).append((float(attrs['value']), classes))
        shown = (attrs.get('class') or '').split()
        self.folds += [0] if 'fold' in shown else []
        if 'node' in shown and any('fold' in c for _, c in self.open):
            self.folds[-1] += 1
        if tag not in VOID:
            self.open.append((tag, attrs.get('class') or ''))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open[-1][0] == tag, (tag, self.open)
            self.open.pop()

    def handle_startendtag(self, tag, attrs):
        pass

    def numbers(self, section, workload, *classes):
        """Those without a workload of their own are of all."""
        return [v for v, c in self.data.get(section, []) if set(classes) <= set(c) and (f'w{workload}' in c or 'w' not in c)]


def near(a, b):
    return abs(a - b) <= 1e-4 * max(abs(a), abs(b)) + 1e-12


def check_trace(plan, page, text, trace):
    events = [e for e in trace['traceEvents'] if e['ph'] == 'X' and e['pid'] < plan['tp']]
    load = [w['dims'] for w in plan['workload']].index(trace['otherData']['sizes'])
    for w in range(len(plan['workload'])):
        ends = [max(1e-6 * (e['ts'] + e['dur']) for e in events if e['pid'] == r) for r in range(plan['tp'])] if w == load else []
        lines = page.numbers('time', w, 'measured')
        assert len(lines) == len(ends) and all(map(near, lines, ends)), (w, lines, ends)
    scale = max([1e-6 * (e['ts'] + e['dur']) for e in events] + [plan['cost']['workloads'][load]['unsharded_seconds']])
    for r, line in enumerate(re.findall(r'measured</span><div class=track>(.*?)</div>', text)):
        for kind, category in (('wait', 'wait'), ('sent', 'collective')):
            wide = sum(map(float, re.findall(rf'<i class="{kind}" style=width:([0-9.]+)%', line)))
            want = 1e-4 * sum(e['dur'] for e in events if e['pid'] == r and e['cat'] == category) / scale
            assert abs(wide - want) < 0.1, (r, kind, wide, want)


def check_nodes(page, text, w, shown):
    """The nodes of a fold are shown once, and its head has their total."""
    times = [int(t) for t in re.findall('<div class=fold><p><b>×([0-9]+)', text)]
    nodes = [(v, 'fold' in c) for v, c in page.data['layers'] if 'node' in c and (f'w{w}' in c or 'w' not in c)]
    heads = [v for v, c in page.data['layers'] if 'fold' in c and 'node' not in c and (f'w{w}' in c or 'w' not in c)]
    assert len(nodes) + sum(n * (t - 1) for n, t in zip(page.folds, times)) == len(shown), (len(nodes), page.folds, times, len(shown))
    assert len(heads) == len(times) == len(page.folds)
    if not times:
        assert all(near(v, s['seconds'][w]) for (v, _), s in zip(nodes, shown))
    assert near(sum(v for v, folded in nodes if not folded) + sum(heads), sum(s['seconds'][w] for s in shown)), heads


def check(plan, text, most, trace=None):
    page = Page(text)
    if trace:
        check_trace(plan, page, text, trace)
    assert len(text.encode()) < most, f'{len(text.encode())} bytes'
    assert not re.search(r'(src|href)=.?https?:|@import|url\(', text), 'needs a network'
    assert all(link[1:] in page.ids for link in page.links), 'a link leads nowhere'
    shown = [s for s in plan['steps'] if 'layer' not in s or plan['layers'][s['layer']] == s['layer']]
    inside = sum('inside' in s for s in shown)
    assert text.count(', runs inside <a href=#p') == inside or page.folds and inside, 'the kernel of a node is no link'
    ranks = [sum(r[k + '_bytes'] for k in ('weight', 'state', 'peak', 'block')) for r in plan['ranks']]
    memory = [v for v, _ in page.data['memory']]
    assert memory[1:] == ranks[:16], (memory, ranks)
    assert [v for v, _ in page.data['tiles']].count(max(ranks)) >= 1
    for w, cost in enumerate(plan['cost']['workloads']):
        lines = page.numbers('time', w)
        totals = [cost['unsharded_seconds'], cost['seconds']][plan['tp'] == 1:]
        assert all(map(near, lines, totals)), lines
        others = page.numbers('ranks', w)
        assert near(others[0], cost['unsharded_seconds']), others
        free = plan['options']['sp'] == 'off' and 'limit' not in plan['memory'] and not set(plan['options']) & {'plan', 'weights'}
        assert not free or any(near(t, cost['seconds']) for t in others), (others, cost)
        groups = [v for v, c in page.data['layers'] if 'group' in c and not {'node', 'fold'} & set(c) and (f'w{w}' in c or 'w' not in c)]
        assert near(sum(groups), cost['seconds']), (sum(groups), cost)
        check_nodes(page, text, w, shown)
        rows = page.numbers('collectives', w)
        bytes_and_seconds = sum(c['bytes'][w] for c in plan['collectives']), sum(c['seconds'][w] for c in plan['collectives'])
        for kind, total in enumerate(bytes_and_seconds):  # each is told of a row, and of its kind
            assert near(sum(rows[kind::2]), 2 * total) if kind else sum(rows[::2]) == 2 * total, (rows[kind::2], total)
    for kind in {c['op'] for c in plan['collectives']}:
        assert f"<th>{sum(c['op'] == kind for c in plan['collectives'])} {kind}" in text, kind


if __name__ == '__main__':
    check(json.load(open(sys.argv[1])), open(sys.argv[2]).read(), int(sys.argv[3]), *(json.load(open(t)) for t in sys.argv[4:]))
