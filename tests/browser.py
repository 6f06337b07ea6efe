"""browser.py BROWSER WORK PAGE...: opens report pages in a headless browser, 400 and 1280 pixels wide, light and dark, everything unfolded.
Nothing may go beyond the right edge, the console stays empty, captions touch no bar, an option or an entry of a key stays on one line, tabs and the search work."""
import json
import re
import subprocess
import sys

FRAME = '''<meta charset=utf-8><body><script>
const pages = %s, results = [];
const visible = e => e.getClientRects().length > 0;
async function look(page, width) {
  const frame = document.createElement('iframe');
  frame.style = 'border:0;height:2000px;width:' + width + 'px';
  frame.src = page;
  await new Promise(done => { frame.onload = done; document.body.append(frame); });
  const d = frame.contentDocument, r = {page, width};
  r.screens = d.documentElement.scrollHeight / 900;
  r.links = [...d.querySelectorAll('a')].length;
  for (const e of d.querySelectorAll('details')) e.open = true;
  r.beyond = [...d.querySelectorAll('main *')].filter(e => visible(e) && !e.closest('.scroll,pre,table:not(.wide)') &&
    e.getBoundingClientRect().right > width + 1).map(e => e.outerHTML.slice(0, 80)).slice(0, 3);
  const box = e => e.getBoundingClientRect();
  r.touches = [...d.querySelectorAll('.try small')].filter(e => visible(e) && box(e).top < box(e.parentNode.querySelector('.track')).bottom).length;
  r.broken = [...d.querySelectorAll('.try span span,.key span')].filter(e => e.getClientRects().length > 1).length;
  r.scrolls = d.documentElement.scrollWidth;
  r.loads = [...d.querySelectorAll('input[name=w]')].map(tab => {
    tab.click();
    return d.querySelector('.tile b').innerText;
  });
  const search = d.getElementById('search');
  const find = text => {
    search.value = text;
    search.dispatchEvent(new Event('input'));
    return [...d.querySelectorAll('.node,.row')].filter(e => !e.classList.contains('hidden')).length;
  };
  r.found = [find('MatMul'), find('nothing is called so'), find('')];
  r.paper = frame.contentWindow.getComputedStyle(d.body).backgroundColor;
  results.push(r);
  frame.remove();
}
(async () => {
  for (const page of pages) for (const width of [400, 1280]) await look(page, width);
  document.body.innerHTML = '<pre id=results></pre>';
  document.getElementById('results').textContent = JSON.stringify(results);
})();
</script>'''


def look(browser, work, pages, dark):
    frame = f'{work}/frame.html'
    open(frame, 'w').write(FRAME % json.dumps([f'file://{p}' for p in pages]))
    flags = ['--headless', '--no-sandbox', '--disable-gpu', '--allow-file-access-from-files', '--disable-web-security', '--enable-logging=stderr',
             f'--user-data-dir={work}/profile', '--window-size=1300,2000', '--virtual-time-budget=20000', '--dump-dom']
    if dark:
        flags.append('--blink-settings=preferredColorScheme=0')
    run = subprocess.run([browser, *flags, f'file://{frame}'], capture_output=True, text=True, timeout=120)
    said = re.search(r'<pre id="results">(.*?)</pre>', run.stdout, re.S)
    if not said:
        print(run.stderr[-1000:])
        sys.exit(f'{browser} gives no results')
    console = [line for line in run.stderr.splitlines() if 'CONSOLE' in line]
    assert not console, console[:3]
    return json.loads(said[1].replace('&lt;', '<').replace('&gt;', '>').replace('&amp;', '&'))


def check(results, dark):
    for r in results:
        assert r['scrolls'] <= r['width'] and not r['beyond'], r
        assert not r['touches'] and not r['broken'], r
        assert r['found'][0] > 0 and r['found'][1] == 0 and r['found'][2] > r['found'][0], r
        assert len(set(r['loads'])) == len(r['loads']) and all(r['loads']), r
        assert r['screens'] < (5 if r['width'] > 400 else 8), r
        brightness = sum(map(int, re.findall(r'\d+', r['paper'])[:3]))
        assert (brightness < 200) == dark, r


if __name__ == '__main__':
    browser, work, *pages = sys.argv[1:]
    for dark in (False, True):
        check(look(browser, work, pages, dark), dark)
