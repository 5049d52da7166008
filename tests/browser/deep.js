// Appended to a deep flame graph by tests/browser/run: where things are as it opens, and at its end.
(function () {
const svg = document.documentElement, seen = {};
try {
  const all = (css) => Array.from(svg.querySelectorAll(css));
  const frame = (name) => all(".f").find((g) => g.querySelector("title").textContent.split("\n")[0] === name);
  const place = (e) => { const box = e.getBoundingClientRect(); return [box.top, box.bottom]; };
  const places = () => ({ title: place(svg.querySelector(".title")), search: place(svg.querySelector("input")),
                          details: place(svg.querySelector(".details")), root: place(frame("all")), leaf: place(frame("f99")) });
  seen.window = window.innerHeight;
  seen.height = Number(svg.getAttribute("height"));
  seen.rows = all(".f").length;
  seen.scrolled = window.scrollY;
  seen.opened = places();
  window.scrollTo(0, seen.height);
  window.dispatchEvent(new Event("scroll"));
  seen.at_end = places();
} catch (e) { seen.error = String(e.stack || e); }
svg.setAttribute("data-result", JSON.stringify(seen));
})();
