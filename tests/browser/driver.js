// Appended to the flame graph by tests/browser/run: works it as a person would, and leaves what it saw in data-result.
(function () {
const svg = document.documentElement, seen = {};
try {
  const all = (css) => Array.from(svg.querySelectorAll(css));
  const frame = (name) => all(".f").find((g) => g.querySelector("title").textContent.split("\n")[0] === name);
  const width = (g) => g.getAttribute("display") === "none" ? 0 : Number(g.querySelector("rect").getAttribute("width"));
  const label = (g) => { const t = g.querySelector("text"); return t ? t.textContent : ""; };
  const click = (e) => e.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const key = (k, more, on) => { const e = new KeyboardEvent("keydown", Object.assign({ key: k, bubbles: true, cancelable: true }, more)); (on || document).dispatchEvent(e); return e.defaultPrevented; };
  const input = svg.querySelector("input"), details = svg.querySelector(".details"), matched = svg.querySelector(".matched");
  const reset = all(".button").find((e) => e.textContent === "Reset zoom");
  const find = (text) => { input.value = text; input.dispatchEvent(new Event("input")); };
  const hidden = (e) => e.getAttribute("display") === "none";

  seen.window = window.innerWidth;
  seen.frames = all(".f").length;
  seen.root = width(frame("all"));
  seen.share = width(frame("hot_a(long)")) / seen.root;
  seen.narrow_label = label(frame("std::vector<std::pair<int, std::string>>::emplace_back(int&&, std::string&&)"));
  seen.overflow = all(".f").filter((g) => !hidden(g) && g.querySelector("text") && g.querySelector("text").getComputedTextLength() > width(g)).map(label);
  seen.reset_hidden = hidden(reset);

  frame("hot_a(long)").dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  seen.hover = details.textContent;

  click(frame("workload(double)").querySelector("rect"));
  seen.zoomed = [width(frame("workload(double)")), width(frame("main")), width(frame("kworker/0:1")), width(frame("hot_a(long)"))];
  seen.zoom_details = details.textContent;
  seen.reset_shown = !hidden(reset);
  click(frame("std::vector<std::pair<int, std::string>>::emplace_back(int&&, std::string&&)") && frame("hot_b(long)").querySelector("rect"));
  seen.zoomed_again = [width(frame("hot_b(long)")), width(frame("hot_a(long)"))];
  click(reset);
  seen.unzoomed = width(frame("hot_a(long)")) / width(frame("all"));
  click(frame("narrow").querySelector("rect"));
  seen.narrow_zoomed = label(frame("std::vector<std::pair<int, std::string>>::emplace_back(int&&, std::string&&)"));
  key("Escape");
  seen.escape_unzooms = hidden(reset);

  seen.ctrl_f = key("f", { ctrlKey: true }) && document.activeElement === input;
  input.blur();
  seen.slash = key("/") && document.activeElement === input;
  find("HOT_[ab]");
  seen.matches = all(".f.m").map((g) => g.querySelector("title").textContent.split("\n")[0]);
  seen.matched = matched.textContent;
  find("walk");
  seen.recursive = matched.textContent;
  find("(");
  seen.bad_pattern = input.classList.contains("bad") && all(".f.m").length === 0;
  find("split");
  seen.searching = svg.classList.contains("searching");
  key("Escape", {}, input);
  seen.cleared = input.value === "" && all(".f.m").length === 0 && !svg.classList.contains("searching") && matched.textContent === "";

  const at = () => { const g = svg.querySelector(".f.at"); return g ? g.querySelector("title").textContent.split("\n")[0] : null; };
  const walked = [];
  for (const k of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowDown"]) { key(k); walked.push(at()); }
  seen.walked = walked;
  key("Enter");
  seen.enter = [width(frame("workload(double)")), label(frame("workload(double)"))];
  seen.owned = svg.dataset.owned || null;
  seen.scripts = all("script").length;
} catch (e) { seen.error = String(e.stack || e); }
svg.setAttribute("data-result", JSON.stringify(seen));
})();
