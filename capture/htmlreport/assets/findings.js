// The list of findings, with a filter by kind. Items are created on demand.
const LEVELS = ['■ ', '▲ ', '● '], LEVEL_NAMES = ['serious', 'delay', 'note'];
const PAGE = 100;
const findingList = {kinds: new Set(), matching: [], shown: 0};

function filterFindings() {
  findingList.matching = [];
  for (let f = 0; f < F.n; f++) {
    if (findingList.kinds.size && !findingList.kinds.has(F.kind[f])) continue;
    if (store.pair !== '' && !aboutPair(f)) continue;
    findingList.matching.push(f);
  }
  findingList.shown = 0;
  byId('finding-list').replaceChildren();
  byId('finding-scroll').scrollTop = 0;
  moreFindings();
}
// aboutPair keeps findings that concern no message in every selection.
function aboutPair(f) {
  return F.messages[f].length === 0 || F.messages[f].some((id) => messageOf.has(id) && pairKey(messageOf.get(id)) === store.pair);
}

function moreFindings(n = PAGE) {
  const list = findingList.matching, end = Math.min(list.length, findingList.shown + n);
  const items = [];
  for (let i = findingList.shown; i < end; i++) items.push(findingItem(list[i]));
  byId('finding-list').append(...items);
  findingList.shown = end;
  const more = byId('finding-more'), none = byId('finding-none');
  more.hidden = end === list.length;
  more.textContent = `Show ${Math.min(PAGE, list.length - end)} more of ${count(list.length - end)}`;
  none.hidden = list.length > 0;
  none.textContent = F.n ? 'No findings of this selection.' : 'Nothing was found.';
  markFinding();
}

// linked returns a list of numbers, with links to those in the report: "packets 4, 5".
function linked(word, numbers, isListed) {
  if (numbers.length === 0) return [];
  const items = numbers.flatMap((n, i) => [i ? ', ' : ' ', isListed(n) ? element('a', {href: `#${word}-${n}`}, String(n)) : String(n)]);
  return [element('span', {}, numbers.length === 1 ? word : word + 's', ...items)];
}

function findingItem(f) {
  const kind = F.kinds[F.kind[f]];
  const where = linked('packet', F.packets[f], (p) => stepOfPacket(p) >= 0).concat(linked('message', F.messages[f], (id) => messageOf.has(id)));
  return element('li', {id: `finding-${f + 1}`}, element('button', {type: 'button', class: `finding level-${kind.level}`, 'data-finding': f, onclick: () => selectFinding(f)},
    element('span', {class: 'top'},
      element('span', {class: 'kind'}, element('span', {'aria-hidden': 'true'}, LEVELS[kind.level]), element('span', {class: 'sr'}, LEVEL_NAMES[kind.level] + ': '), words(kind.name)),
      element('time', {}, exact(F.time[f]))),
    element('span', {class: 'text'}, F.text[f])), element('p', {class: 'where'}, ...where.flatMap((w, i) => i ? [' · ', w] : [w])));
}

function markFinding() {
  const sel = store.selected;
  for (const b of byId('finding-list').querySelectorAll('.on')) b.classList.remove('on');
  const about = new Set(sel.finding >= 0 ? [sel.finding] : [...sel.messages].flatMap((m) => findingsOf.get(m) || []));
  for (const f of about) {
    const b = byId('finding-list').querySelector(`[data-finding="${f}"]`);
    if (b) b.classList.add('on');
  }
  return about;
}

// showFinding scrolls the selection into view, even if it was filtered out.
function showFinding() {
  const about = markFinding();
  if (about.size === 0) return;
  const f = Math.min(...about);
  let i = findingList.matching.indexOf(f);
  if (i < 0) {
    findingList.kinds.clear();
    pressKinds();
    filterFindings();
    i = findingList.matching.indexOf(f);
  }
  if (i >= findingList.shown) moreFindings(i + 1 - findingList.shown + 20);
  const item = byId('finding-list').querySelector(`[data-finding="${f}"]`), box = byId('finding-scroll');
  if (!item) return;
  // Only the list scrolls, not the page.
  const top = item.getBoundingClientRect().top - box.getBoundingClientRect().top;
  if (top < 0 || top + item.offsetHeight > box.clientHeight) box.scrollTop += top - Math.max(0, (box.clientHeight - item.offsetHeight) / 3);
  markFinding();
}

function pressKinds() {
  for (const b of byId('kinds').children) {
    const k = Number(b.dataset.kind);
    b.setAttribute('aria-pressed', String(k < 0 ? findingList.kinds.size === 0 : findingList.kinds.has(k)));
  }
}
function buildKinds() {
  const press = (k) => {
    const {kinds} = findingList;
    if (k < 0) kinds.clear();
    else if (!kinds.delete(k)) kinds.add(k);
    pressKinds();
    filterFindings();
  };
  const order = F.kinds.map((_, k) => k).sort((a, b) => F.kinds[a].level - F.kinds[b].level || F.kinds[b].total - F.kinds[a].total);
  const all = F.kinds.reduce((sum, k) => sum + k.total, 0);
  const chip = (k, text, n) => element('button', {type: 'button', 'data-kind': k, onclick: () => press(k)}, `${text} ${count(n)}`);
  if (F.n) byId('kinds').append(chip(-1, 'All', all), ...order.map((k) => chip(k, LEVELS[F.kinds[k].level] + words(F.kinds[k].name), F.kinds[k].total)));
  pressKinds();
  byId('finding-more').addEventListener('click', () => moreFindings());
  filterFindings();
}
