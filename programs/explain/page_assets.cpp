// The page's style sheet, body and script. They stand here as raw strings, so that the product needs no files at run time and the
// build no generator.
//
// Three columns: source, instructions, and what is known at the step of the path that is shown. Rows that aren't in sight aren't
// laid out (content-visibility), so that ten thousand of them scroll as a hundred do. Texts are only ever put in by textContent.
//
//      j k, down up     a step of the path          n p     the next branch, the one before
//      c                the next cause              g G     the path's beginning, its end
//      click            an instruction: the path's next visit; a register: where its value came from; a line: its instructions
//      f                the graph: blocks of instructions, each where paths part or meet, coloured by visits; a click goes there
//      ?                help
#include "programs/explain/page.h"

namespace rawbpf::inline v0::explain {

const std::string_view kPageStyle = R"css(
:root { --ink: #1d2430; --faint: #68707d; --page: #fff; --panel: #f5f6f8; --edge: #d5dae2; --at: #ffe9a8; --bad: #c62828; --good: #1b7f3b; --on: #e8f0fe; --link: #1f6feb; --heat: 224,112,32; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ec; --faint: #98a1b0; --page: #14171c; --panel: #1c2027; --edge: #343a45; --at: #5a4a12; --bad: #ff7b72; --good: #56d364; --on: #1b2a44; --link: #6ea8ff; --heat: 255,150,60; } }
* { box-sizing: border-box; }
html, body { margin: 0; height: 100%; }
body { display: flex; flex-direction: column; background: var(--page); color: var(--ink); font: 13px/1.45 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
code, .mono, .row, .line, .value { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px; }
header { padding: 10px 16px; border-bottom: 1px solid var(--edge); }
h1 { margin: 0 0 4px; font-size: 16px; }
h1 .verdict { padding: 1px 8px; border-radius: 9px; color: var(--page); background: var(--faint); font-size: 13px; }
.refused h1 .verdict { background: var(--bad); } .accepted h1 .verdict { background: var(--good); }
header p { margin: 2px 0; max-width: 110em; } header .label { color: var(--faint); margin-right: .5em; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(12em, 27fr) minmax(20em, 42fr) minmax(18em, 31fr); }
section { min-width: 0; overflow: auto; border-right: 1px solid var(--edge); position: relative; }
section h2 { position: sticky; top: 0; z-index: 1; margin: 0; padding: 5px 10px; background: var(--panel); border-bottom: 1px solid var(--edge); font-size: 12px; }
section h2 small { color: var(--faint); font-weight: normal; }
.row, .line { display: flex; white-space: pre; min-height: 20px; line-height: 20px; padding-right: 10px; content-visibility: auto; contain-intrinsic-size: auto 20px; cursor: pointer; }
.row:hover, .line:hover { background: var(--panel); }
.row.on, .line.on { background: var(--on); } .row.at, .line.at { background: var(--at); } .row.bad .text { color: var(--bad); font-weight: 600; }
.row .heat { flex: 0 0 6px; } .row .number { flex: 0 0 4.5em; text-align: right; color: var(--faint); padding-right: .8em; }
.row .visits { flex: 0 0 5em; text-align: right; color: var(--faint); padding-right: .8em; } .row .edges { flex: 0 0 auto; }
.row .text { flex: 1; overflow: hidden; text-overflow: ellipsis; } .row .remark { color: var(--faint); }
.row.never { opacity: .5; } .row.cause .number::before { content: "\25CF"; color: var(--bad); margin-right: .4em; }
.line .number { flex: 0 0 4em; text-align: right; color: var(--faint); padding-right: .8em; } .file { padding: 3px 10px; color: var(--faint); border-top: 1px solid var(--edge); }
#arcs { position: absolute; top: 0; left: 0; pointer-events: none; overflow: visible; } #arcs path { fill: none; stroke: var(--faint); opacity: .55; } #arcs path.live { stroke: var(--link); opacity: 1; stroke-width: 2; }
table { border-collapse: collapse; width: 100%; } td { padding: 2px 10px; vertical-align: top; border-bottom: 1px solid var(--edge); }
td.name { white-space: nowrap; width: 1%; } td.name button { all: unset; color: var(--link); cursor: pointer; } td.name button:focus-visible { outline: 2px solid var(--link); }
tr.changed td { background: var(--at); } .value { overflow-wrap: anywhere; }
ol { margin: 6px 0; padding-left: 2.6em; padding-right: 10px; } li { cursor: pointer; padding: 1px 0; } li.at { background: var(--at); } li:hover { color: var(--link); }
.note { padding: 6px 10px; color: var(--faint); } .conclusion { padding: 4px 10px; color: var(--bad); }
nav { display: flex; gap: 6px; align-items: center; padding: 5px 10px; border-bottom: 1px solid var(--edge); } nav button { font: inherit; padding: 1px 9px; color: var(--ink); background: var(--panel); border: 1px solid var(--edge); border-radius: 6px; cursor: pointer; }
nav input { flex: 1; min-width: 3em; } footer { padding: 4px 16px; border-top: 1px solid var(--edge); color: var(--faint); }
kbd { border: 1px solid var(--edge); border-radius: 4px; padding: 0 5px; background: var(--panel); color: var(--ink); font: 11px ui-monospace, monospace; }
dialog { color: var(--ink); background: var(--page); border: 1px solid var(--edge); border-radius: 10px; max-width: 44em; } dialog td { border: 0; }
#graph { max-width: 94vw; max-height: 90vh; padding: 10px 14px; } #graph h2 { margin: 0 0 6px; font-size: 13px; } #graph h2 small { color: var(--faint); font-weight: normal; } #graph .drawing { overflow: auto; max-height: 78vh; }
#graph svg text { font: 11px ui-monospace, monospace; fill: var(--ink); pointer-events: none; } #graph rect { stroke: var(--edge); cursor: pointer; } #graph rect.on { stroke: var(--link); stroke-width: 2; } #graph rect.at { stroke: var(--ink); stroke-width: 3; } #graph rect.bad { stroke: var(--bad); stroke-width: 3; }
#graph path { fill: none; stroke: var(--faint); } #graph path.on { stroke: var(--link); stroke-width: 2; } #graph path.back { stroke-dasharray: 4 3; }
@media (max-width: 800px) { body { height: auto; } main { grid-template-columns: 1fr; } section { max-height: 60vh; } }
)css";

const std::string_view kPageBody =
    R"html(<header><h1><span id="name"></span> <span class="verdict" id="verdict"></span></h1><div id="why"></div></header>
<main>
<section id="source" aria-label="source"><h2>Source</h2><div id="lines"></div></section>
<section id="code" aria-label="instructions"><h2>Instructions <small id="sums"></small></h2><div id="rows" style="position:relative"></div></section>
<section id="state" aria-label="state"><h2>Known <small id="where"></small></h2>
<nav><button id="back" title="k">&#8592;</button><button id="next" title="j">&#8594;</button><input id="slider" type="range" min="0" value="0" aria-label="step of the path"></nav>
<div id="known"></div><div id="chain"></div><div id="visits"></div></section>
</main>
<footer><kbd>j</kbd> <kbd>k</kbd> step &nbsp; <kbd>n</kbd> <kbd>p</kbd> branch &nbsp; <kbd>c</kbd> cause &nbsp; <kbd>g</kbd> <kbd>G</kbd> ends &nbsp; <kbd>f</kbd> graph &nbsp; click a register: where it came from &nbsp; <kbd>?</kbd> help</footer>
<dialog id="graph"><h2>The program's blocks: how often each was looked at <small>blue: on the path; dashed: back; a click goes there, f or Esc closes</small></h2><div class="drawing"></div></dialog>
<dialog id="help"><h2>Keys</h2><table>
<tr><td><kbd>j</kbd> <kbd>&#8595;</kbd></td><td>the next step of the path</td></tr><tr><td><kbd>k</kbd> <kbd>&#8593;</kbd></td><td>the step before</td></tr>
<tr><td><kbd>n</kbd> <kbd>p</kbd></td><td>the next branch, the one before</td></tr><tr><td><kbd>c</kbd></td><td>the next cause</td></tr>
<tr><td><kbd>g</kbd> <kbd>G</kbd></td><td>the path's beginning, its end</td></tr><tr><td><kbd>f</kbd></td><td>the graph of the program: blocks of instructions and the ways between them</td></tr><tr><td>click</td><td>an instruction: the path's next visit of it; a register: the step that gave it its value; a line: its instructions</td></tr>
</table><p>The bar left of an instruction is its heat: how often it was looked at. Lines on the left are jumps. Yellow: this step. Blue: on the path.</p></dialog>
)html";

const std::string_view kPageScript = R"js(
'use strict';
const D = JSON.parse(document.getElementById('data').textContent), S = n => D.strings[n], $ = id => document.getElementById(id);
const el = (tag, cls, text) => { const e = document.createElement(tag); if (cls) e.className = cls; if (text !== undefined) e.textContent = text; return e; };
let at = 0, marked = [];
document.body.className = D.verdict === 'not decided' ? 'undecided' : D.verdict;
$('name').textContent = D.object + ': ' + D.program + (D.section ? ' (' + D.section + ')' : '');
$('verdict').textContent = D.verdict;
const say = (label, text) => { if (!text) return; const p = el('p'); p.append(el('span', 'label', label), el(label === 'reason' ? 'code' : 'span', '', text)); $('why').append(p); };
say('reason', D.reason); say('so', D.conclusion); say('remedy', D.remedy); if (D.hint !== D.remedy) say('hint', D.hint);
$('sums').textContent = D.insns.length + ' instructions, ' + D.processed + ' visits, ' + D.states + ' states kept, by ' + D.by;

// Rows. [number, text, line, visits, jumps, straight, pruned, ends, target, known]
const most = Math.max(1, ...D.insns.map(i => i[3])), onPath = new Set(D.path.map(p => p[0])), causeRows = new Set(D.causes.map(c => D.path[c[0]][0]));
const rowOf = new Map(D.insns.map((i, n) => [i[0], n])), H = 20, rows = [];
const edges = [];
D.insns.forEach((i, n) => { if (i[8] >= 0 && rowOf.has(i[8])) edges.push([n, rowOf.get(i[8])]); });
// Lanes: short jumps next to the code.
edges.sort((a, b) => Math.abs(a[0] - a[1]) - Math.abs(b[0] - b[1]));
const lanes = [], LANES = 10;
for (const e of edges) {
  const lo = Math.min(e[0], e[1]), hi = Math.max(e[0], e[1]);
  let lane = 0;
  for (; lane < LANES - 1; ++lane) { const l = lanes[lane] || (lanes[lane] = []); if (l.length < 400 && !l.some(x => x[0] <= hi && lo <= x[1])) break; }
  (lanes[lane] || (lanes[lane] = [])).push([lo, hi]);
  e[2] = lane;
}
const gutter = 14 + 7 * Math.max(1, Math.min(LANES, lanes.length));
const remark = i => { const out = [];
  if (i[4] && i[5]) out.push('splits: ' + i[4] + ' jump, ' + i[5] + ' straight on'); else if (i[4]) out.push(i[6] ? i[4] + ' jump' : 'always jumps'); else if (i[5]) out.push(i[6] ? i[5] + ' straight on' : 'never jumps');
  if (i[6]) out.push(i[6] + ' known before'); if (i[7]) out.push(i[7] + (i[7] === 1 ? ' path ends' : ' paths end')); return out.join(', '); };
const box = $('rows');
D.insns.forEach((i, n) => {
  const r = el('div', 'row' + (i[3] ? '' : ' never') + (onPath.has(n) ? ' on' : '') + (D.verdict !== 'accepted' && i[0] === D.at ? ' bad' : '') + (causeRows.has(n) ? ' cause' : ''));
  const heat = el('span', 'heat'); if (i[3]) heat.style.background = 'rgba(var(--heat),' + (.12 + .88 * Math.log1p(i[3]) / Math.log1p(most)).toFixed(2) + ')';
  const gap = el('span', 'edges'); gap.style.width = gutter + 'px';
  const text = el('span', 'text', S(i[1])), note = remark(i); if (note) text.append(el('span', 'remark', '    ; ' + note));
  r.append(heat, gap, el('span', 'number', i[0]), el('span', 'visits', i[3] ? '\u00d7' + i[3] : '\u2013'), text);
  r.onclick = () => visit(n); rows.push(r); box.append(r);
});
const NS = 'http://www.w3.org/2000/svg', svg = document.createElementNS(NS, 'svg'); svg.id = 'arcs'; svg.setAttribute('width', gutter + 6); svg.setAttribute('height', rows.length * H);
const arcs = edges.map(e => { const x = gutter - 2 - 7 * e[2], y1 = e[0] * H + H / 2 + 2, y2 = e[1] * H + H / 2 - 2, p = document.createElementNS(NS, 'path'), end = gutter + 5;
  p.setAttribute('d', `M${end} ${y1}H${x + 3}Q${x} ${y1} ${x} ${y1 + (y2 > y1 ? 3 : -3)}V${y2 - (y2 > y1 ? 3 : -3)}Q${x} ${y2} ${x + 3} ${y2}H${end}m-4 -3l4 3l-4 3`); svg.append(p); return p; });
box.append(svg);

// Source lines, by file, in order.
const lineEls = [], order = D.lines.map((l, n) => n).sort((a, b) => D.lines[a][0] - D.lines[b][0] || D.lines[a][1] - D.lines[b][1]);
let file = -1;
for (const n of order) { const l = D.lines[n]; if (l[0] !== file) { file = l[0]; $('lines').append(el('div', 'file mono', S(file))); }
  const e = el('div', 'line'); e.append(el('span', 'number', l[1]), el('span', 'text', S(l[2]))); e.onclick = () => { const row = D.insns.findIndex(i => i[2] === n); if (row >= 0) visit(row); };
  lineEls[n] = e; $('lines').append(e); }
if (!D.lines.length) $('lines').append(el('p', 'note', 'The program comes without line information.'));
for (const p of D.path) { const l = D.insns[p[0]][2]; if (l >= 0) lineEls[l].classList.add('on'); }

// What is known after a step: changes from the last kept point on. Points make jumps cheap.
const points = [];
const start = () => [new Map([[1, ['ctx()', -1]], [10, ['fp0', -1]]])];
const copy = s => s.map(f => new Map(f));
function apply(s, n) { const p = D.path[n]; while (s.length > p[2] + 1) s.pop();
  for (const [place, frame, v] of p[3]) { while (s.length <= frame) s.push(new Map([[10, ['fp0', n]]])); if (S(v)) s[frame].set(place, [S(v), n]); else s[frame].delete(place); } }
function stateAt(n) { const k = Math.floor(n / 256); while (points.length <= k) { const s = points.length ? copy(points[points.length - 1]) : start();
    if (points.length) for (let i = (points.length - 1) * 256; i < points.length * 256; ++i) apply(s, i); points.push(s); }
  const s = copy(points[k]); for (let i = k * 256; i <= n && i < D.path.length; ++i) apply(s, i); return s; }
const nameOf = place => place >= 0 ? 'r' + place : 'stack ' + place;
function show(n, scroll = true) {
  if (!D.path.length) return;
  at = Math.max(0, Math.min(D.path.length - 1, n));
  const p = D.path[at], row = p[0], i = D.insns[row];
  for (const e of marked) e.classList.remove('at', 'live'); marked = [];
  const mark = (e, c = 'at') => { if (e) { e.classList.add(c); marked.push(e); } };
  mark(rows[row]); if (i[2] >= 0) mark(lineEls[i[2]]);
  edges.forEach((e, k) => { if (e[0] === row && p[1] !== 2) mark(arcs[k], 'live'); });
  if (scroll) { rows[row].scrollIntoView({ block: 'nearest' }); if (i[2] >= 0) lineEls[i[2]].scrollIntoView({ block: 'nearest' }); }
  $('slider').value = at; $('where').textContent = 'after step ' + (at + 1) + ' of ' + D.path.length + ', instruction ' + i[0] + (p[1] === 1 ? ': jumps' : p[1] === 2 ? ': straight on' : '');
  const state = stateAt(at), known = $('known'); known.replaceChildren();
  state.forEach((f, n2) => { if (state.length > 1) known.append(el('p', 'note', n2 ? 'function called, frame ' + n2 : 'the program, frame 0'));
    const t = el('table'); [...f.keys()].sort((a, b) => (a < 0) - (b < 0) || (a < 0 ? b - a : a - b)).forEach(k => { const [v, from] = f.get(k), tr = el('tr', from === at ? 'changed' : '');
      const b = el('button', 'mono', nameOf(k)); b.title = from < 0 ? 'from the start' : 'set at step ' + (from + 1); b.onclick = () => { if (from >= 0) show(from); };
      const td = el('td', 'name'); td.append(b); tr.append(td, el('td', 'value', v)); t.append(tr); }); known.append(t); });
  const v = $('visits'); v.replaceChildren();
  if (i[3] > 1 && i[9].length) { v.append(el('p', 'note', 'This instruction at other visits (' + i[3] + '):')); const t = el('table');
    for (const k of i[9]) { const tr = el('tr'); tr.append(el('td', 'name mono', nameOf(k[0])), el('td', 'value', k[2].map(S).join('  |  '))); t.append(tr); } v.append(t); }
  for (const e of $('chain').querySelectorAll('li')) e.classList.toggle('at', +e.dataset.at === at);
}
function visit(row) { let n = D.path.findIndex((p, k) => k > at && p[0] === row); if (n < 0) n = D.path.findIndex(p => p[0] === row); if (n >= 0) show(n);
  else { for (const e of marked) e.classList.remove('at', 'live'); marked = [rows[row]]; rows[row].classList.add('at'); $('where').textContent = 'instruction ' + D.insns[row][0] + ' is not on this path';
    const known = $('known'); known.replaceChildren(); const t = el('table'); for (const k of D.insns[row][9]) { const tr = el('tr'); tr.append(el('td', 'name mono', nameOf(k[0])), el('td', 'value', k[2].map(S).join('  |  '))); t.append(tr); }
    known.append(el('p', 'note', D.insns[row][3] ? 'What it changed on other paths:' : 'No path came here.'), t); } }
if (D.causes.length) { $('chain').append(el('p', 'note', 'Cause')); const ol = el('ol'); for (const [n, t] of D.causes) { const li = el('li', '', S(t)); li.dataset.at = n; li.onclick = () => show(n); ol.append(li); } $('chain').append(ol);
  if (D.conclusion) $('chain').append(el('p', 'conclusion', 'so: ' + D.conclusion)); }
$('slider').max = Math.max(0, D.path.length - 1); $('slider').oninput = e => show(+e.target.value); $('back').onclick = () => show(at - 1); $('next').onclick = () => show(at + 1);
// The graph: a block ends where paths part, begins where they meet. A block stands one row below the lowest that leads to it.
let blocks = null;
function drawGraph() {
  const n = D.insns.length, starts = new Set([0]), goes = k => /^gotol? /.test(S(D.insns[k][1])), ends = k => S(D.insns[k][1]) === 'exit';
  D.insns.forEach((i, k) => { if (rowOf.has(i[8]) && i[8] >= 0) { starts.add(rowOf.get(i[8])); starts.add(k + 1); } if (ends(k) || (i[0] === D.at && D.verdict !== 'accepted')) starts.add(k + 1); });
  const begin = [...starts].filter(k => k < n).sort((a, b) => a - b), blockOf = new Array(n); let b = -1;
  for (let k = 0; k < n; ++k) { if (starts.has(k)) ++b; blockOf[k] = b; }
  blocks = begin.map((k, j) => ({ first: k, last: (begin[j + 1] || n) - 1, level: 0, to: [] }));
  blocks.forEach((x, j) => { const k = x.last, t = D.insns[k][8]; if (t >= 0 && rowOf.has(t)) x.to.push(blockOf[rowOf.get(t)]); if (!ends(k) && !goes(k) && k + 1 < n) x.to.push(j + 1);
    for (const t2 of x.to) if (t2 > j) blocks[t2].level = Math.max(blocks[t2].level, x.level + 1); });
  const W = 120, R = 34, GX = 150, GY = 60, width = [], way = new Set();
  blocks.forEach(x => { x.column = width[x.level] = (width[x.level] === undefined ? -1 : width[x.level]) + 1; x.x = 44 + x.column * GX; x.y = 10 + x.level * GY; });
  for (let k = 1; k < D.path.length; ++k) way.add(blockOf[D.path[k - 1][0]] + ' ' + blockOf[D.path[k][0]]);
  const g = document.createElementNS(NS, 'svg'), make = (tag, attributes, cls) => { const e = document.createElementNS(NS, tag); for (const a in attributes) e.setAttribute(a, attributes[a]); if (cls) e.setAttribute('class', cls); g.append(e); return e; };
  g.setAttribute('width', 84 + GX * (1 + Math.max(...width))); g.setAttribute('height', 30 + GY * (1 + Math.max(...blocks.map(x => x.level))));
  blocks.forEach((x, j) => x.to.forEach((t, nth) => { const y = blocks[t], back = t <= j, x1 = x.x + W * (nth + 1) / (x.to.length + 1), y1 = x.y + R, x2 = y.x + W / 2, y2 = y.y, side = Math.max(x.x, y.x) + W + 14, far = !back && y.level > x.level + 1, left = Math.min(x.x, y.x) - 12 - 6 * Math.min(4, y.level - x.level);
    make('path', { d: back ? `M${x1} ${y1}C${side} ${y1 + 20} ${side} ${y2 - 20} ${x2 + 30} ${y2}` : far ? `M${x1} ${y1}C${left} ${y1 + 16} ${left} ${y2 - 16} ${x2 - 30} ${y2}` : `M${x1} ${y1}C${x1} ${y1 + 14} ${x2} ${y2 - 14} ${x2} ${y2}` }, (way.has(j + ' ' + t) ? 'on' : '') + (back ? ' back' : '')); }));
  blocks.forEach(x => { const visits = Math.max(...D.insns.slice(x.first, x.last + 1).map(i => i[3])), bad = D.verdict !== 'accepted' && D.insns.slice(x.first, x.last + 1).some(i => i[0] === D.at);
    let on = false; for (let k = x.first; k <= x.last; ++k) on = on || onPath.has(k);
    x.rect = make('rect', { x: x.x, y: x.y, width: W, height: R, rx: 5 }, bad ? 'bad' : on ? 'on' : '');
    x.rect.style.fill = visits ? 'rgba(var(--heat),' + (.12 + .7 * Math.log1p(visits) / Math.log1p(most)).toFixed(2) + ')' : 'var(--panel)';
    x.rect.onclick = () => { $('graph').close(); visit(x.first); };
    make('text', { x: x.x + 6, y: x.y + 14 }).textContent = D.insns[x.first][0] + (x.last > x.first ? ' to ' + D.insns[x.last][0] : '');
    make('text', { x: x.x + 6, y: x.y + 28 }).textContent = visits ? '\u00d7' + visits : 'never'; });
  $('graph').querySelector('.drawing').append(g);
}
function graph() { const box = $('graph'); if (box.open) return box.close(); if (!blocks) drawGraph(); box.showModal();
  const row = D.path.length ? D.path[at][0] : 0; for (const x of blocks) { const here = x.first <= row && row <= x.last; x.rect.classList.toggle('at', here); if (here) x.rect.scrollIntoView({ block: 'center', inline: 'center' }); } }
const branch = d => { for (let n = at + d; n >= 0 && n < D.path.length; n += d) if (D.path[n][1]) return n; return at; };
const keys = { j: () => show(at + 1), ArrowDown: () => show(at + 1), k: () => show(at - 1), ArrowUp: () => show(at - 1), n: () => show(branch(1)), p: () => show(branch(-1)), g: () => show(0), G: () => show(D.path.length - 1),
  c: () => { if (D.causes.length) { const next = D.causes.find(x => x[0] > at) || D.causes[0]; show(next[0]); } }, f: graph, '?': () => $('help').open ? $('help').close() : $('help').showModal() };
addEventListener('keydown', e => { if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return; e.preventDefault(); keys[e.key](); });
show(D.verdict === 'accepted' ? 0 : D.path.length - 1);
)js";

} // namespace rawbpf::inline v0::explain
