// A table with any number of rows, of which only the visible ones have elements.
//
// A column is {name, width in em, text(row), value(row) to sort by, and optionally left, edge, stick, mark(row),
// open(row)}.
const ROW_HEIGHT = 30, OVERSCAN = 6;
// Browsers cannot lay out elements of more than some 17 million pixels. Beyond that, a pixel of scrolling is more than
// a pixel of the table.
const MOST_HEIGHT = 8e6;

function makeTable(box, {label: title, columns, groups, height, isOn, pick}) {
  const t = {rows: new Uint32Array(0), sort: 0, down: false, drawn: ''};
  const buttons = columns.map((c, i) => element('button', {type: 'button', title: 'Sort by ' + (c.title || c.name), onclick: () => sortBy(i)}));
  const classes = (c) => [c.left && 'left', c.edge && 'edge', c.stick && 'stick'].filter(Boolean).join(' ');
  const heads = columns.map((c, i) => element('th', {scope: 'col', class: classes(c)}, buttons[i]));
  const body = element('tbody');
  const table = element('table', {'aria-label': title},
    element('colgroup', {}, ...columns.map((c) => { const col = element('col'); col.style.width = c.width + 'em'; return col; })),
    element('thead', {}, groups ? element('tr', {}, ...groups.map(([name, span]) => element('th', {colspan: span, class: 'group', scope: 'colgroup'}, name))) : null, element('tr', {}, ...heads)), body);
  table.style.width = columns.reduce((sum, c) => sum + c.width, 0) + 'em';
  const scroll = element('div', {class: 'vt', tabindex: 0, role: 'region', 'aria-label': title}, table);
  scroll.style.maxHeight = height + 'px';
  const empty = element('p', {class: 'vt-empty', hidden: true}, 'Nothing to list.');
  box.append(scroll, empty);

  function sortBy(i) {
    t.down = i === t.sort ? !t.down : Boolean(columns[i].high);
    t.sort = i;
    order();
    scroll.scrollTop = 0;
    draw(true);
  }
  function order() {
    const {value} = columns[t.sort], sign = t.down ? -1 : 1;
    const keys = [];
    for (const r of t.rows) keys[r] = value(r);
    // Rows without a value come last in either order.
    t.rows = Uint32Array.from(t.rows).sort((a, b) => {
      const x = keys[a], y = keys[b];
      if (typeof x === 'string') return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
      return Number.isNaN(x) - Number.isNaN(y) || sign * (x - y) || a - b;
    });
    heads.forEach((h, i) => {
      h.setAttribute('aria-sort', i !== t.sort ? 'none' : t.down ? 'descending' : 'ascending');
      buttons[i].textContent = columns[i].name + (i !== t.sort ? '' : t.down ? ' ↓' : ' ↑');
    });
  }
  function cell(c, r) {
    const td = element('td', {class: [classes(c), c.mark ? c.mark(r) : ''].filter(Boolean).join(' ')});
    if (c.open) td.append(element('button', {type: 'button', class: 'linkish', onclick: (e) => { e.stopPropagation(); c.open(r); }}, c.text(r)));
    else td.textContent = c.text(r);
    if (c.left && !c.open) td.title = td.textContent;
    return td;
  }
  function spacer(h) {
    const td = element('td', {colspan: columns.length});
    td.style.height = h + 'px';
    const tr = element('tr', {class: 'space', 'aria-hidden': 'true'}, td);
    return tr;
  }
  // span returns the mapping from the scroll position to rows.
  function span() {
    const n = t.rows.length, whole = n * ROW_HEIGHT, tall = Math.min(whole, MOST_HEIGHT);
    return {n, tall, inView: Math.ceil(height / ROW_HEIGHT) + 1, stretch: whole / Math.max(tall, 1)};
  }
  function draw(force) {
    const {n, tall, inView, stretch} = span();
    const first = Math.max(0, Math.min(n - inView, Math.floor(scroll.scrollTop * stretch / ROW_HEIGHT)) - OVERSCAN);
    const last = Math.min(n, first + inView + 2 * OVERSCAN);
    const now = first + '-' + last;
    if (!force && t.drawn === now) return;
    t.drawn = now;
    const trs = [];
    for (let i = first; i < last; i++) {
      const r = t.rows[i];
      const tr = element('tr', {'aria-rowindex': i + 2, class: isOn && isOn(r) ? 'on' : ''}, ...columns.map((c) => cell(c, r)));
      if (pick) tr.addEventListener('click', () => pick(r));
      trs.push(tr);
    }
    const above = Math.min(first * ROW_HEIGHT / stretch, Math.max(0, tall - trs.length * ROW_HEIGHT));
    const below = Math.max(0, tall - above - trs.length * ROW_HEIGHT);
    body.replaceChildren(...(above ? [spacer(above)] : []), ...trs, ...(below ? [spacer(below)] : []));
    table.setAttribute('aria-rowcount', n + 1);
    empty.hidden = n > 0;
  }
  scroll.addEventListener('scroll', later(() => draw(false)), {passive: true});
  return {
    setRows(rows) { t.rows = rows; order(); scroll.scrollTop = 0; draw(true); },
    redraw() { draw(true); },
    // showRow scrolls a row into view within the table.
    showRow(r) {
      const i = t.rows.indexOf(r);
      if (i < 0) return;
      const {stretch} = span(), y = i * ROW_HEIGHT / stretch, seen = scroll.clientHeight - 60;
      if (y < scroll.scrollTop || y > scroll.scrollTop + seen - ROW_HEIGHT) scroll.scrollTop = Math.max(0, y - seen / 3);
      draw(true);
    },
  };
}
