// The style of packets. Types differ in line and arrowhead as well as in color, and each problem has a separate mark.
const STYLES = [
  {width: 1.4, head: 'open'}, // SEND_REQUEST
  {width: 1.4, head: 'full', tail: true}, // CLEAR_TO_SEND
  {width: 3, head: 'full'}, // DATA
  {width: 1.4, head: 'diamond'}, // ACK
  {width: 1.4, head: 'open'}, // any other
];
const SHORT = {SEND_REQUEST: 'SEND_REQ', CLEAR_TO_SEND: 'CLEAR', DATA: 'DATA', ACK: 'ACK'};

// drawPacket draws an arrow from x1 to x2 at y; band is the distance to its last datagram below. x1 and x2 are
// lifelines, equal for a rank that sends to itself. A tight arrow consists only of its line.
function drawPacket(g, type, flags, x1, x2, y, band, tight = false) {
  const style = STYLES[Math.min(type, 4)], colour = flags & MISSING ? colours.soft : typeColour(type);
  const to = x2 > x1 ? 1 : x2 < x1 ? -1 : 1;
  if (x1 === x2) x2 = x1 + 26;
  const wide = Math.abs(x2 - x1);
  const tip = x2 - to * 2, tail = x1 + to * 2, low = y + band;
  g.strokeStyle = g.fillStyle = colour;
  g.lineWidth = tight ? 1 : style.width;
  if (band > 1) {
    const alpha = g.globalAlpha;
    g.globalAlpha = alpha * 0.22;
    g.beginPath();
    g.moveTo(tail, y); g.lineTo(tip, y); g.lineTo(tip, low); g.lineTo(tail, low);
    g.fill();
    g.globalAlpha = alpha;
  }
  g.setLineDash(flags & MISSING ? [2, 4] : flags & RETRANSMITTED ? [7, 4] : []);
  const stop = flags & (LOST | MISSING) ? x1 + (x2 - x1) * 0.8 : tip - to * 5;
  g.beginPath();
  if (flags & DUPLICATE) {
    g.lineWidth = 1.2;
    g.moveTo(tail, y - 1.8); g.lineTo(stop, y - 1.8);
    g.moveTo(tail, y + 1.8); g.lineTo(stop, y + 1.8);
  } else {
    g.moveTo(tail, y); g.lineTo(stop, y);
  }
  if (band > 1) { g.moveTo(tail, low); g.lineTo(stop, low); }
  g.stroke();
  g.setLineDash([]);
  if (tight && !(flags & ~FROM_SENDER)) return;
  g.lineWidth = 1.4;
  if (style.tail && wide > 24) {
    g.beginPath(); g.arc(tail + to * 2, y, 2.6, 0, 2 * Math.PI); g.fill();
  }
  if (flags & (LOST | MISSING)) drawCross(g, stop, low);
  else drawHead(g, style.head, tip, low, to);
  if (flags & RETRANSMITTED && wide > 30) drawLoop(g, tail + to * 11, y, colour);
}

function drawHead(g, head, x, y, to) {
  g.beginPath();
  if (head === 'open') {
    g.moveTo(x - to * 7, y - 4); g.lineTo(x, y); g.lineTo(x - to * 7, y + 4);
    g.moveTo(x, y); g.lineTo(x - to * 7, y);
    g.stroke();
  } else if (head === 'full') {
    g.moveTo(x, y); g.lineTo(x - to * 9, y - 4.5); g.lineTo(x - to * 9, y + 4.5); g.closePath();
    g.fill();
  } else {
    g.moveTo(x, y); g.lineTo(x - to * 5, y - 4); g.lineTo(x - to * 10, y); g.lineTo(x - to * 5, y + 4); g.closePath();
    g.save(); g.fillStyle = colours.card; g.fill(); g.restore();
    g.stroke();
  }
}

function drawCross(g, x, y) {
  g.save();
  g.beginPath();
  g.moveTo(x - 5, y - 5); g.lineTo(x + 5, y + 5);
  g.moveTo(x - 5, y + 5); g.lineTo(x + 5, y - 5);
  for (const [colour, width] of [[colours.card, 5], [colours.bad, 2.2]]) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.stroke();
  }
  g.restore();
}

// drawLoop draws the mark of a retransmission: a circular arrow.
function drawLoop(g, x, y, colour) {
  g.save();
  g.fillStyle = colours.card;
  g.beginPath(); g.arc(x, y, 6.2, 0, 2 * Math.PI); g.fill();
  g.strokeStyle = g.fillStyle = colour;
  g.lineWidth = 1.5;
  g.beginPath(); g.arc(x, y, 4, -0.3, 1.45 * Math.PI); g.stroke();
  g.beginPath(); g.moveTo(x - 0.8, y - 7); g.lineTo(x + 3.6, y - 4); g.lineTo(x - 0.8, y - 1); g.fill();
  g.restore();
}

// drawWait draws a waiting rank: hatched, to be visible without color.
function drawWait(g, x, y0, y1, width, colour) {
  g.save();
  g.beginPath();
  g.rect(x - width / 2, y0, width, y1 - y0);
  g.fillStyle = colours.card;
  g.fill();
  g.strokeStyle = colour;
  g.lineWidth = 1;
  g.stroke();
  g.clip();
  g.globalAlpha *= 0.75;
  g.beginPath();
  for (let y = Math.floor(y0 / 5) * 5; y < y1 + width; y += 5) {
    g.moveTo(x - width / 2, y); g.lineTo(x + width / 2, y - width);
  }
  g.stroke();
  g.restore();
}

function buildLegend() {
  const rows = S.types.slice(0, 4).map((name, type) => [name, (g) => drawPacket(g, type, FROM_SENDER, 0, 46, 8, 0)]);
  rows.push(
    ['retransmitted', (g) => drawPacket(g, 0, RETRANSMITTED, 0, 46, 8, 0)],
    ['delivered twice', (g) => drawPacket(g, 3, DUPLICATE, 0, 46, 8, 0)],
    ['lost', (g) => drawPacket(g, 1, LOST, 0, 46, 8, 0)],
    ['not recorded', (g) => drawPacket(g, 1, MISSING, 0, 46, 8, 0)],
    ['rank waits', (g) => drawWait(g, 23, 1, 15, 8, colours.phase[0])],
  );
  const canvases = rows.map(([name, draw]) => {
    const canvas = element('canvas', {'aria-hidden': 'true'});
    byId('legend').append(element('li', {}, canvas, name));
    return () => draw(sized(canvas).g);
  });
  const draw = () => canvases.forEach((f) => f());
  store.on('theme', draw);
  draw();
}
