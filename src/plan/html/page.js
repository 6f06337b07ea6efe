const search = document.getElementById('search'), found = document.getElementById('found');
const rows = [...document.querySelectorAll('.node, .row')].map(e => [e, e.textContent]);
search.hidden = false;
search.addEventListener('input', () => {
  const words = search.value.trim().split(/\s+/).filter(Boolean);
  // layers that are alike are shown once: a number in the search stands for any
  const tests = words.map(w => new RegExp(w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\d+/g, '(?:\\d+|\\*)'), 'i'));
  let hits = 0;
  for (const [e, text] of rows) {
    const hit = tests.every(t => t.test(text));
    e.classList.toggle('hidden', !hit);
    hits += hit;
  }
  for (const g of document.querySelectorAll('.group')) {
    const any = g.querySelector('.node:not(.hidden)');
    g.classList.toggle('hidden', words.length > 0 && !any);
    g.open = words.length > 0 && !!any;
  }
  found.textContent = words.length ? hits + ' found' : '';
});
const show = () => {
  const e = location.hash && document.getElementById(location.hash.slice(1));
  for (let d = e; d; d = d.parentElement) if (d.tagName === 'DETAILS') d.open = true;
  if (e) e.scrollIntoView({block: 'center'});
};
addEventListener('hashchange', show);
show();
