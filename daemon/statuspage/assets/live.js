'use strict';
// The loaded page is complete. This script applies the changes that the daemon sends.
(() => {
  const $ = (id) => document.getElementById(id);
  const form = $('filter'), lamp = $('live'), clock = $('clock'), pause = $('pause');
  const silentAfter = 5000; // ms without an event until the page reports it
  let source = null, paused = false, watchdog = 0, retry = 0, typing = 0;

  const query = () => {
    const q = new URLSearchParams(new FormData(form));
    for (const [name, unset] of [['q', ''], ['sort', 'problems']]) {
      if (q.get(name) === unset) q.delete(name);
    }
    return q.toString();
  };

  const show = (state, text) => {
    if (document.body.dataset.state === state) return;
    document.body.dataset.state = state;
    lamp.textContent = text;
  };

  // The server escapes all texts, and the policy allows no other script.
  const parse = (html) => {
    const t = document.createElement('template');
    t.innerHTML = html;
    return t.content;
  };

  // replace replaces the content of an element; details stay open, and a focused summary keeps the focus.
  const replace = (e, now) => {
    const open = e.querySelector('details')?.open, focused = e.contains(document.activeElement) && document.activeElement.tagName === 'SUMMARY';
    e.replaceChildren(...now.childNodes);
    const details = e.querySelector('details');
    if (details && open) details.open = true;
    if (focused) details?.querySelector('summary').focus();
  };

  // Only changed elements are replaced, to keep selections and the scroll position.
  const morph = (old, now) => {
    if (old.className !== now.className) old.className = now.className;
    if (old.children.length !== now.children.length || old.children.length === 0) {
      if (old.innerHTML !== now.innerHTML) replace(old, now);
      return;
    }
    [...old.children].forEach((child, i) => {
      const other = now.children[i];
      if (child.tagName !== other.tagName) child.replaceWith(other.cloneNode(true));
      else if (child.outerHTML !== other.outerHTML) {
        if (child.className !== other.className) child.className = other.className;
        replace(child, other.cloneNode(true));
      }
    });
  };

  const update = (name, change) => {
    const list = $(name);
    if (!list) return;
    const items = new Map([...list.children].map((e) => [e.dataset.key, e]));
    for (const [key, html] of Object.entries(change.i || {})) {
      const now = parse(html).firstElementChild;
      if (items.has(key)) morph(items.get(key), now);
      else items.set(key, now);
    }
    if (!change.o) return;
    const wanted = new Set(change.o);
    for (const e of [...list.children]) if (!wanted.has(e.dataset.key)) e.remove();
    change.o.forEach((key, i) => {
      const e = items.get(key);
      if (e && list.children[i] !== e) list.insertBefore(e, list.children[i] || null);
    });
  };

  // The values of a chart are shown at the pointer. Updates keep its figure and replace the content.
  const pointers = new Map(); // position of the pointer, by figure
  const hover = (figure) => {
    figure.querySelectorAll('.hair, .tip').forEach((e) => e.remove());
    const chart = figure.querySelector('.chart'), x = pointers.get(figure);
    if (!chart || x === undefined) return;
    const box = chart.getBoundingClientRect(), plot = chart.parentElement.getBoundingClientRect();
    const width = chart.viewBox.baseVal.width, want = (x - box.left) / box.width * width;
    let best = null;
    for (const point of chart.dataset.points.split(';')) {
      const [at, value] = point.split(':');
      if (!best || Math.abs(at - want) < Math.abs(best.at - want)) best = {at: Number(at), value};
    }
    const hair = document.createElement('span'), tip = document.createElement('span');
    hair.className = 'hair';
    tip.className = 'tip';
    const when = new Date(Number(chart.dataset.end) - (1 - best.at / width) * chart.dataset.span * 1000);
    tip.textContent = `${best.value} at ${when.toLocaleTimeString([], {hour12: false})}`;
    chart.parentElement.append(hair, tip);
    const left = box.left - plot.left + best.at / width * box.width;
    hair.style.left = left + 'px';
    tip.style.left = Math.min(left + 8, plot.width - tip.offsetWidth) + 'px';
  };
  for (const figure of document.querySelectorAll('.rates figure')) {
    for (const event of ['pointermove', 'pointerdown']) figure.addEventListener(event, (e) => { pointers.set(figure, e.clientX); hover(figure); });
    figure.addEventListener('pointerleave', () => { pointers.delete(figure); hover(figure); });
  }

  const apply = (change) => {
    clock.textContent = change.t;
    if (change.title) document.title = change.title;
    if (change.level) $('verdict-box').className = 'verdict ' + change.level;
    for (const [id, html] of Object.entries(change.p || {})) $(id)?.replaceChildren(parse(html));
    for (const [name, l] of Object.entries(change.l || {})) update(name, l);
    for (const figure of pointers.keys()) hover(figure);
    show('live', 'Live');
    clearTimeout(watchdog);
    watchdog = setTimeout(() => show('lost', 'No response since'), silentAfter);
  };

  const close = () => {
    clearTimeout(retry);
    clearTimeout(watchdog);
    source?.close();
    source = null;
  };

  // An EventSource does not report why it was rejected, so the status is fetched.
  const refused = async (by) => {
    const asking = new AbortController();
    let again = silentAfter, full = false;
    try {
      const answer = await fetch(by.url, {signal: asking.signal});
      full = answer.status === 503;
      again = 1000 * answer.headers.get('Retry-After') || silentAfter;
      asking.abort();
    } catch { /* no response */ }
    if (source !== by) return;
    clearTimeout(watchdog);
    if (full) show('full', 'Too many viewers, not live since');
    else show('lost', 'No response since');
    retry = setTimeout(open, again);
  };

  const open = () => {
    close();
    if (paused || document.hidden) return;
    const q = query();
    const events = source = new EventSource('events' + (q && '?' + q));
    source.onmessage = (e) => apply(JSON.parse(e.data));
    source.onerror = () => {
      // The browser reconnects after most errors, but not after a rejection.
      if (events.readyState === EventSource.CLOSED) refused(events);
      else show('lost', 'No response since');
    };
  };

  const filter = () => {
    const q = query();
    history.replaceState(null, '', q ? '?' + q : location.pathname);
    open();
  };

  form.addEventListener('submit', (e) => { e.preventDefault(); filter(); });
  form.addEventListener('change', filter);
  form.elements.q.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(filter, 250); });
  $('apply').hidden = true;
  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.textContent = paused ? 'Resume' : 'Pause';
    pause.setAttribute('aria-pressed', paused);
    if (paused) show('paused', 'Paused at');
    open();
  });
  document.addEventListener('visibilitychange', () => { if (document.hidden) close(); else open(); });
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', (e) => { if (e.persisted) open(); });
  open();
})();
