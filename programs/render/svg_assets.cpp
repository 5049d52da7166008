// The flame graph's style sheet and script. They stand here as raw strings, so that the product needs no files at run time and
// the build no generator.
//
// Style: user code in warm colours, kernel code in cool ones, ten shades each, chosen by the name's hash; frames without a name
// are grey. Text is monospace, so that labels can be cut to a known number of characters. Dark where the reader's system is.
//
// Script: reads the frames once (position and width in samples from data-x and data-w, the row from the rectangle's y), and lays
// them out again for each zoom, and for each width of the window. It makes the search box itself, so that a viewer without
// scripts shows none. Everything that it shows goes through textContent: no name is ever parsed as markup.
//
//      click, Enter      zoom into a frame          Esc         clear the search, then the zoom
//      / or Ctrl-F       search (a regular expression, case ignored)
//      arrow keys        walk: up to the widest callee, down to the caller (an icicle: the other way round), left and right to siblings
#include "programs/render/svg.h"

namespace rawbpf::inline v0::render {

const std::string_view kFlameGraphStyle = R"css(
svg { font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; --ink: #1d2430; --faint: #68707d; --page: #ffffff; --edge: #1d2430; background: var(--page); }
text { fill: var(--ink); }
.page { fill: var(--page); }
.title { font: 600 18px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
.subtitle, .legend text, .details, .button { font: 12px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; fill: var(--faint); }
.details { fill: var(--ink); }
.f text { fill: #1b1d22; pointer-events: none; }
.f { cursor: pointer; outline: none; }
.f:hover rect, .f.at rect { stroke: var(--edge); stroke-width: 1.2; }
.f.a { opacity: .55; }
.searching .f { opacity: .38; }
.searching .f.m { opacity: 1; }
.f.m rect { fill: #e05bd0; }
.button { cursor: pointer; fill: #1f6feb; }
.button:hover { text-decoration: underline; }
.r { fill: #d5dae2; } .p { fill: #b9c6b4; } .n { fill: #c9c9cf; }
.u0 { fill: #ffd9a0; } .u1 { fill: #ffc98a; } .u2 { fill: #ffb877; } .u3 { fill: #ffa866; } .u4 { fill: #fb9a5a; }
.u5 { fill: #ffcf6e; } .u6 { fill: #ffc04f; } .u7 { fill: #f7ad52; } .u8 { fill: #ffb199; } .u9 { fill: #f79a86; }
.k0 { fill: #b9dcf7; } .k1 { fill: #a5d0f2; } .k2 { fill: #92c5ee; } .k3 { fill: #82b8e6; } .k4 { fill: #78aee0; }
.k5 { fill: #b4d3ff; } .k6 { fill: #9fc4fb; } .k7 { fill: #a9d9e6; } .k8 { fill: #94cbdc; } .k9 { fill: #c2d0f5; }
input { box-sizing: border-box; width: 100%; height: 26px; padding: 0 8px; font: 12px system-ui, sans-serif; color: var(--ink); background: var(--page); border: 1px solid #aab2bf; border-radius: 6px; outline: none; }
input:focus { border-color: #1f6feb; box-shadow: 0 0 0 2px #1f6feb33; }
input.bad { border-color: #d1242f; }
@media (prefers-color-scheme: dark) { svg { --ink: #e4e7ec; --faint: #98a1b0; --page: #14171c; --edge: #ffffff; } .button { fill: #6ea8ff; } }
)css";

const std::string_view kFlameGraphScript = R"js(
(function () {
"use strict";
const svg = document.currentScript.closest("svg");
const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
const MARGIN = 12, CHARACTER = 7.23, UP = svg.classList.contains("icicle") ? -1 : 1;
const alone = document.documentElement === svg; // in a window of its own, not inside a page
const details = svg.querySelector(".details"), legend = svg.querySelector(".legend"), holder = svg.querySelector(".frames");
const head = svg.querySelector(".head"), foot = svg.querySelector(".foot");

const frames = Array.from(holder.children, (g) => {
  const lines = g.querySelector("title").textContent.split("\n"), rect = g.querySelector("rect");
  return { g, rect, title: lines.filter((l) => l).join("  \u00b7  "), name: lines[0], text: g.querySelector("text"), x: Number(g.dataset.x), w: Number(g.dataset.w),
           y: Number(rect.getAttribute("y")), row: UP * Number(rect.getAttribute("y")), parent: null, children: [], shown: true };
});
// Frames come parents first, left to right; rows tell the depth, downwards in an icicle.
const open = [];
for (const f of frames) {
  while (open.length && open[open.length - 1].row <= f.row) open.pop();
  f.parent = open[open.length - 1] || null;
  if (f.parent) f.parent.children.push(f);
  open.push(f);
}
const root = frames[0];
let zoom = root, at = null, width = 0;

function make(name, attributes, parent) {
  const e = document.createElementNS(SVG, name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  return parent.appendChild(e);
}
const percent = (n, of) => (100 * n / of).toFixed(2) + " %";

function layOut() {
  width = alone ? svg.getBoundingClientRect().width : 1200;
  const scale = (width - 2 * MARGIN) / zoom.w;
  for (const f of frames) {
    const left = Math.max(f.x, zoom.x), right = Math.min(f.x + f.w, zoom.x + zoom.w);
    const above = f.row > zoom.row; // a caller of the zoomed frame, or beside one
    const w = (right - left) * scale;
    f.shown = right > left && w >= 0.25 && (!above || (f.x <= zoom.x && f.x + f.w >= zoom.x + zoom.w));
    if (!f.shown) { f.g.setAttribute("display", "none"); continue; }
    f.g.removeAttribute("display");
    f.g.classList.toggle("a", above);
    const x = MARGIN + (left - zoom.x) * scale;
    f.rect.setAttribute("x", x.toFixed(1));
    f.rect.setAttribute("width", Math.max(w - 0.5, 0.2).toFixed(1));
    const room = Math.floor((w - 8) / CHARACTER);
    let label = "";
    if (room >= 3) {
      const characters = Array.from(f.name);
      label = characters.length <= room ? f.name : characters.slice(0, room - 1).join("") + "\u2026";
    }
    if (label && !f.text) f.text = make("text", { y: f.y + 13 }, f.g);
    if (f.text) {
      f.text.textContent = label;
      f.text.setAttribute("x", (x + 4).toFixed(1));
    }
  }
  legend.setAttribute("transform", "translate(" + (width - 1200) + ",0)");
  searchBox.setAttribute("x", width - MARGIN - 250);
  reset.setAttribute("x", width - MARGIN - 262);
  reset.setAttribute("display", zoom === root ? "none" : "inline");
  count();
}

function describe(f) {
  if (!f) {
    details.textContent = "click a frame to zoom \u00b7 / or Ctrl-F searches \u00b7 arrow keys walk \u00b7 Esc resets";
    return;
  }
  details.textContent = f.title + (zoom === root || f.x < zoom.x || f.w > zoom.w ? "" : " (" + percent(f.w, zoom.w) + " of the zoomed)");
}
function select(f) {
  if (at) at.g.classList.remove("at");
  at = f;
  if (at) at.g.classList.add("at");
  describe(at);
  const hidden = at && alone && (at.y < window.scrollY + 80 || at.y > window.scrollY + window.innerHeight - 60);
  if (hidden) window.scrollTo(0, at.y - window.innerHeight / 2);
}
function zoomTo(f) {
  zoom = f;
  layOut();
  select(f === root ? null : f);
}

// Search.
const searchBox = make("foreignObject", { y: 10, width: 250, height: 28 }, head);
const input = searchBox.appendChild(document.createElementNS(HTML, "input"));
input.setAttribute("type", "search");
input.setAttribute("placeholder", "Search (regular expression)");
input.setAttribute("aria-label", "Search");
input.setAttribute("spellcheck", "false");
const matched = make("text", { "class": "details matched", "text-anchor": "end", y: details.getAttribute("y") }, foot);
const reset = make("text", { "class": "button", "text-anchor": "end", y: 28, display: "none" }, head);
reset.textContent = "Reset zoom";
let pattern = null;

function search() {
  const words = input.value;
  pattern = null;
  input.classList.remove("bad");
  if (words) {
    try { pattern = new RegExp(words, "i"); } catch (e) { input.classList.add("bad"); }
  }
  svg.classList.toggle("searching", pattern !== null);
  for (const f of frames) f.g.classList.toggle("m", pattern !== null && f !== root && pattern.test(f.name));
  count();
}
// The share of samples with a match anywhere on their stack: a match inside a match counts once.
function count() {
  matched.setAttribute("x", width - MARGIN);
  if (!pattern) { matched.textContent = ""; return; }
  let sum = 0, end = -1, n = 0;
  for (const f of frames) {
    if (!f.g.classList.contains("m")) continue;
    const left = Math.max(f.x, zoom.x, end), right = Math.min(f.x + f.w, zoom.x + zoom.w);
    if (f.x < zoom.x + zoom.w && f.x + f.w > zoom.x) ++n;
    if (right > left) { sum += right - left; end = right; }
  }
  matched.textContent = n + (n === 1 ? " frame matches: " : " frames match: ") + percent(sum, zoom.w);
}
input.addEventListener("input", search);
input.addEventListener("keydown", (e) => {
  e.stopPropagation();
  if (e.key === "Escape") { input.value = ""; search(); input.blur(); e.preventDefault(); }
  else if ((e.ctrlKey || e.metaKey) && e.key === "f") { input.select(); e.preventDefault(); }
  else if (e.key === "Enter") input.blur();
});

const owner = (e) => { const g = e.target.closest && e.target.closest(".f"); return g ? frames.find((f) => f.g === g) : null; };
holder.addEventListener("click", (e) => { const f = owner(e); if (f) zoomTo(f); });
holder.addEventListener("mouseover", (e) => { const f = owner(e); if (f) describe(f); });
holder.addEventListener("mouseleave", () => describe(at));
reset.addEventListener("click", () => zoomTo(root));

const widest = (list) => list.filter((f) => f.shown).reduce((a, b) => (!a || b.w > a.w ? b : a), null);
function beside(f, step) {
  const row = frames.filter((o) => o.shown && o.y === f.y).sort((a, b) => a.x - b.x);
  return row[row.indexOf(f) + step] || f;
}
document.addEventListener("keydown", (e) => {
  if (e.altKey) return;
  if (e.key === "/" || ((e.ctrlKey || e.metaKey) && e.key === "f")) {
    input.focus();
    input.select();
  } else if (e.ctrlKey || e.metaKey) {
    return;
  } else if (e.key === "Escape") {
    if (pattern || input.value) { input.value = ""; search(); } else zoomTo(root);
  } else if (e.key === "Enter") {
    if (at) zoomTo(at);
  } else if (e.key === (UP > 0 ? "ArrowUp" : "ArrowDown")) {
    select(at ? widest(at.children) || at : zoom);
  } else if (e.key === (UP > 0 ? "ArrowDown" : "ArrowUp")) {
    select(at ? at.parent || at : zoom);
  } else if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
    select(at ? beside(at, e.key === "ArrowLeft" ? -1 : 1) : zoom);
  } else {
    return;
  }
  e.preventDefault();
});

// Alone, the graph takes the window's width, and its head and foot stay in sight; inside a page it is scaled like any picture.
function keepInSight() {
  const height = Number(svg.getAttribute("height")), below = height - window.innerHeight;
  head.setAttribute("transform", "translate(0," + Math.max(0, Math.min(window.scrollY, below)) + ")");
  foot.setAttribute("transform", "translate(0," + Math.min(0, window.scrollY - below) + ")");
}
if (alone) {
  svg.setAttribute("width", "100%");
  svg.removeAttribute("viewBox");
  window.addEventListener("resize", () => { layOut(); keepInSight(); });
  window.addEventListener("scroll", keepInSight);
}
layOut();
describe(null);
if (alone) keepInSight(); // it opens as any page does, at its top: title and search are there
})();
)js";

} // namespace rawbpf::inline v0::render
