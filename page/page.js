// The page: what is typed goes to the engine (bridge.h), and what it answers is shown. Nothing leaves this machine; there is no
// server. In this order: small helpers, the engine, the editor, bytes, verdicts, the run, lessons, links, keys, the start.
"use strict";

const $ = (id) => document.getElementById(id);
const SAMPLE = `# Change it: the bytes and the errors update while you type
    r1 = 6
    *(u64 *)(r10 - 8) = r1       # into the stack
    r0 = *(u64 *)(r10 - 8)
    r0 *= 7
    exit
`;
const MOST_TEXT = 100000; // characters

// An element with properties and children; null and false are left out.
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
}
function show(id, ...children) {
  $(id).replaceChildren(...children.filter((child) => child !== null && child !== false));
}
function say(text) { $("said").textContent = text; }

// ---- the engine

let engine = null;

async function startEngine() {
  try {
    engine = await makeEngine();
    return true;
  } catch (error) {
    engine = null;
    show("state", make("p", { className: "fault" }, `This browser can't run the engine, which is WebAssembly: ${error}`));
    return false;
  }
}

// Calls page_NAME. Where the engine itself breaks (it has no more memory), a new one is made, and the answer says so.
function ask(name, types = [], values = []) {
  try {
    return JSON.parse(engine.ccall(`page_${name}`, "string", types, values));
  } catch (error) {
    engine = null;
    startEngine().then((started) => started && assemble());
    return { error: `the engine stopped and was restarted: ${error}`, hint: "how large are the maps? entries times the size of key and value" };
  }
}

// ---- the editor

let lesson = null; // of LESSONS
let assembled = { mistakes: [], warnings: [], programs: [] };
let state = null; // of the run
let selected = { program: 0, at: 0 }; // the instruction whose bits are shown
let timer = 0;

const text = () => $("text").value;
// Bytes in hex, as `rawbpf decode` takes them: nothing but digits of pairs, outside of comments.
const isHex = (source) => /^(\s*[0-9a-fA-F]{2})+\s*$/.test(source.replace(/#.*/g, ""));
const fileName = () => lesson ? lesson.file : isHex(text()) ? "prog.hex" : "prog.asm";
const lineOf = (position) => text().slice(0, position).split("\n").length;

// From the complaint's column to the end of the word.
function markedLine(line, mistake) {
  const from = Math.max(0, mistake.column - 1);
  const word = /^(\w+|\s*\S)/.exec(line.slice(from));
  const end = from + (word ? word[0].length : 1);
  return [line.slice(0, from), make("mark", {}, line.slice(from, end) || " "), line.slice(end)];
}

function drawText() {
  const lines = text().split("\n"), wrong = new Map(), now = state && !state.ended ? state.line : 0;
  for (const mistake of assembled.mistakes) if (!wrong.has(mistake.line)) wrong.set(mistake.line, mistake);
  const gutter = [], behind = [];
  lines.forEach((line, n) => {
    const mistake = wrong.get(n + 1);
    gutter.push(make("span", { className: mistake ? "wrong" : "" }, `${n + 1}\n`));
    const parts = mistake ? markedLine(line, mistake) : [line];
    if (n + 1 === now) behind.push(make("span", { className: "now" }, ...parts, line ? "" : " "), "\n");
    else behind.push(...parts, "\n");
  });
  show("gutter", ...gutter);
  show("behind", ...behind);
  follow();
}
function follow() {
  $("behind").scrollTop = $("gutter").scrollTop = $("text").scrollTop;
  $("behind").scrollLeft = $("text").scrollLeft;
}

function goTo(line, column) {
  const lines = text().split("\n");
  let position = 0;
  for (let n = 0; n + 1 < line && n < lines.length; ++n) position += lines[n].length + 1;
  position += Math.max(0, column - 1);
  $("text").focus();
  $("text").setSelectionRange(position, position);
  const height = $("text").scrollHeight / Math.max(1, lines.length);
  $("text").scrollTop = Math.max(0, (line - 4) * height);
  follow();
}

// As the command line shows it: the sentence, the line, a caret, the hint.
function complaintBox(complaint, warning) {
  const { line, column, hint } = complaint, message = complaint.message.replace(/^warning: /, "");
  const source = text().split("\n")[line - 1] ?? "";
  const number = String(line).padStart(5);
  const caret = source.slice(0, Math.max(0, column - 1)).replace(/[^\t]/g, " ") + "^";
  const box = make("button", { type: "button", className: warning ? "complaint warning" : "complaint" },
    line ? `${fileName()}:${line}:${column}: ${warning ? "warning: " : ""}${message}` : message,
    line > 0 && make("span", { className: "source" }, `${number} | ${source}\n      | ${caret}`),
    hint ? `hint: ${hint}` : null);
  if (line) box.addEventListener("click", () => goTo(line, column));
  return box;
}

function assemble() {
  clearTimeout(timer);
  timer = 0;
  if (!engine) return;
  const tooLong = text().length > MOST_TEXT;
  const answer = tooLong ? { error: `the text has ${text().length} characters; the limit of this page is ${MOST_TEXT}` }
    : ask("assemble", ["string", "string"], [text(), fileName()]);
  const failed = answer.error ? [{ line: 0, column: 0, message: answer.error, hint: answer.hint }] : null;
  assembled = failed ? { mistakes: failed, warnings: [], programs: [] } : answer;
  state = null;
  show("complaints", ...assembled.mistakes.map((one) => complaintBox(one, false)),
    ...assembled.warnings.map((one) => complaintBox(one, true)));
  choosePrograms();
  selectLine();
  showVerdicts();
  enter();
}

function typed() {
  keep();
  show("report"); // it was of another text
  drawText();
  clearTimeout(timer);
  timer = setTimeout(assemble, text().length > 10000 ? 400 : 80);
}

// ---- bytes, bit by bit

function selectLine() {
  const line = lineOf($("text").selectionStart);
  for (let program = 0; program < assembled.programs.length; ++program)
    for (const insn of assembled.programs[program].instructions)
      if (insn.line === line) {
        if (selected.program !== program || assembled.programs[program].instructions.every((one) => one.at !== selected.at || one.line !== line))
          selected = { program, at: insn.at };
        return drawListing();
      }
  drawListing();
}

function byteBox(insn, number) {
  const value = parseInt(insn.bytes.split(" ")[number], 16);
  const eight = [];
  for (let bit = 7; bit >= 0; --bit) {
    const field = insn.fields.findIndex((one) => {
      const bits = (number - one.byte) * 8 + bit; // from the field's first byte
      return number >= one.byte && bits >= one.low_bit && bits < one.low_bit + one.bits;
    });
    eight.push(make("span", { className: `f${field % 8}` }, String((value >> bit) & 1)));
  }
  return make("div", { className: "byte" }, make("small", {}, `byte ${number}`), value.toString(16).padStart(2, "0"),
    make("div", { className: "eight" }, ...eight));
}

function fieldPlace(field) {
  if (field.bits > 8) return `bytes ${field.byte} to ${field.byte + field.bits / 8 - 1}`;
  if (field.bits === 8) return `byte ${field.byte}`;
  return `byte ${field.byte}, bits ${field.low_bit} to ${field.low_bit + field.bits - 1}`;
}

function fours(boxes) {
  const out = [];
  for (let n = 0; n < boxes.length; n += 8)
    out.push(make("div", { className: "row-of-bytes" }, make("div", {}, ...boxes.slice(n, n + 4)), make("div", {}, ...boxes.slice(n + 4, n + 8))));
  return out;
}

function bitsOf(insn) {
  const boxes = insn.bytes.split(" ").map((_, n) => byteBox(insn, n)), fields = [];
  insn.fields.forEach((field, n) => {
    fields.push(make("dt", { className: `f${n % 8}` }, field.name),
      make("dd", { className: "dim" }, fieldPlace(field)), make("dd", {}, field.meaning));
  });
  return make("div", { className: "bits" }, insn.undefined ? make("p", { className: "fault" }, insn.undefined) : null,
    ...fours(boxes), make("dl", { className: "fields" }, ...fields));
}

function drawListing() {
  const out = [], held = document.activeElement?.dataset?.insn;
  assembled.programs.forEach((program, p) => {
    out.push(make("p", { className: "program-name" }, program.section ? `${program.name} (${program.section})` : program.name));
    for (const insn of program.instructions) {
      const open = selected.program === p && selected.at === insn.at;
      const now = state && !state.ended && state.program === p && state.pc === insn.at;
      const row = make("button", { type: "button", className: `insn${now ? " now" : ""}${refused.has(`${p}:${insn.at}`) ? " refuses" : ""}` },
        make("span", { className: "at" }, String(insn.at)), make("span", { className: "hex" }, insn.bytes),
        make("span", { className: "words" }, insn.text ?? insn.undefined));
      row.setAttribute("aria-expanded", String(open));
      row.dataset.insn = `${p}:${insn.at}`;
      row.addEventListener("click", () => {
        selected = open ? { program: -1, at: -1 } : { program: p, at: insn.at };
        drawListing();
      });
      out.push(row, open && bitsOf(insn));
    }
  });
  if (out.length === 0) out.push(make("p", { className: "dim" }, "Correct the errors to see the bytes."));
  show("listing", ...out);
  if (held) document.querySelector(`[data-insn="${held}"]`)?.focus();
}

// ---- the verifier's word

let refused = new Set(); // "program:instruction"

function showVerdicts() {
  refused = new Set();
  const answer = assembled.mistakes.length ? { verdicts: [] } : ask("verify");
  const boxes = (answer.verdicts ?? []).map((one, n) => {
    if (one.verdict === "refused" && one.insn !== null) refused.add(`${n}:${one.insn}`);
    const name = assembled.programs.length > 1 ? `${one.program}: ` : "";
    const kind = one.verdict === "accepted" ? "accepted" : one.verdict === "refused" ? "refused" : "undecided";
    const words = one.verdict === "accepted" ? `, ${one.processed} instructions looked at` : one.insn !== null ? ` at instruction ${one.insn}: ${one.reason}` : `: ${one.reason}`;
    const place = one.line ? make("button", { type: "button", className: "place" }, `go to line ${one.line}`) : null;
    place?.addEventListener("click", () => goTo(one.line, one.column));
    return make("div", { className: "verdict" }, `The verifier: ${name}`, make("span", { className: kind }, one.verdict), words, " ", place,
      one.report ? make("pre", { className: "report", tabIndex: 0 }, one.report.trimEnd()) : null,
      one.hint ? make("p", { className: "hint" }, `hint: ${one.hint}`) : null);
  });
  show("verdicts", ...boxes);
  drawListing();
}

// ---- the run

function choosePrograms() {
  const names = assembled.programs.map((program) => program.name), chosen = $("program").value;
  $("program-label").hidden = names.length < 2;
  show("program", ...names.map((name, n) => make("option", { value: n }, name)));
  if (Number(chosen) < names.length && chosen !== "") $("program").value = chosen;
  const always = assembled.programs[Number($("program").value)]?.packet ?? false;
  $("packet-label").hidden = always;
  $("memory-label").textContent = always || $("packet").checked ? "the packet" : "r1 points to";
}

function enter() {
  state = null;
  if (assembled.mistakes.length || assembled.programs.length === 0) {
    show("state", make("p", { className: "dim" }, "Correct the errors to run the program."));
    enableMoves();
    drawText();
    drawListing();
    return;
  }
  shown(ask("enter", ["number", "string", "number"],
    [Number($("program").value || 0), $("memory").value, $("packet").checked ? 1 : 0]));
}

function move(how, n = 0) {
  if (timer) assemble(); // of what was typed just now
  if (!state) return;
  shown(ask("move", ["string", "number"], [how, n]), how);
}

function runAgain() {
  if (timer) assemble();
  if (!state) return;
  ask("again");
  shown(ask("move", ["string", "number"], ["run", 0]), "run");
}

function enableMoves() {
  const held = document.activeElement;
  $("home").disabled = $("back").disabled = !state || state.step === 0;
  $("again").disabled = !state || !state.ended;
  $("forward").disabled = $("to-end").disabled = !state || state.ended || state.fault !== null;
  if (held?.disabled) (held.id === "home" || held.id === "back" ? $("forward") : $("back")).focus();
}

function rows(title, list) {
  return list.length === 0 ? null : [make("h3", {}, title), make("table", {}, ...list)];
}
// Map values of a number's size, as the number that they are.
function asNumber(bytes) {
  const each = bytes.split(" ");
  if (![1, 2, 4, 8].includes(each.length) || !each.every((one) => /^[0-9a-f]{2}$/.test(one))) return "";
  return String(BigInt(`0x${each.reverse().join("")}`));
}
function row(name, value, changed, known) {
  return make("tr", {}, make("th", { scope: "row" }, name), make("td", { className: changed ? "changed" : "" }, value),
    make("td", { className: "known" }, known ?? ""));
}

// The bytes of a slot or of memory, sixteen a line; those that the last step changed stand out.
function byteSpans(bytes, isChanged, offset = 0) {
  return bytes.map((byte, n) => make("span", { className: isChanged(offset + n) ? "changed" : "" }, `${byte} `));
}
function memoryRows(view) {
  const bytes = view.bytes ? view.bytes.split(" ") : [], changed = new Set(view.changed), out = [];
  for (let at = 0; at < bytes.length; at += 16)
    out.push(make("tr", {}, make("th", { scope: "row" }, `+${at}`),
      make("td", { colSpan: 2 }, ...byteSpans(bytes.slice(at, at + 16), (n) => changed.has(n), at))));
  return out;
}

function outcome(how) {
  if (state.fault) return make("p", { className: "fault" }, `The program can't continue: ${state.fault}`);
  if (state.ended) return make("p", {}, make("strong", {}, `The program has ended: r0 = ${state.registers[0].value}`), `, after ${state.step} steps.`);
  if (how === "run") return make("p", { className: "fault" }, `The run was stopped after ${state.step} steps: is there an endless loop? "To the end" continues.`);
  return make("p", { className: "place" }, "next: ", make("strong", {}, state.instruction), state.line ? `   (line ${state.line})` : "");
}

function shown(answer, how = "") {
  if (answer.error) {
    state = null;
    show("state", make("p", { className: "fault" }, answer.error), answer.hint ? make("p", { className: "hint" }, `hint: ${answer.hint}`) : null);
  } else {
    state = answer;
    // A verifier lets no program read what a call has lost, or what was never written, so what the emulator has there is of no use.
    const some = state.registers.some((one) => one.known);
    const known = state.why_not ? make("p", { className: "known" }, `The verifier knows ${state.why_not}`) : null;
    show("state",
      make("p", { className: "place", id: "where" }, `step ${state.step}, instruction ${state.pc}, in ${state.function}` +
        (state.frame ? `, frame ${state.frame}` : "")),
      outcome(how),
      state.changes ? make("p", { id: "changes" }, "changed: ", make("span", { className: "changed" }, state.changes)) : null,
      state.printed ? make("p", {}, `printed: ${state.printed}`) : null, known,
      // At the end only the result counts: what else is there may be what a call left.
      ...rows(state.ended ? "The result" : "Registers, and what the verifier knows of them",
        (state.ended ? state.registers.slice(0, 1) : state.registers).map((one, n) => some && !one.known ? row(`r${n}`, "-", false, "") : row(`r${n}`, one.value, one.changed, one.known))),
      !state.ended && some && state.registers.some((one) => !one.known) ? make("p", { className: "dim" }, "-: not written yet, or lost by a call") : null,
      ...(rows("Stack", state.stack.map((slot) => {
        const line = row(`r10 ${slot.offset}`, "", false, slot.known);
        line.children[1].append(...byteSpans(slot.bytes.split(" "), (n) => slot.changed >> n & 1), `= ${slot.value}`);
        return line;
      })) ?? []),
      ...state.memory.flatMap((view) => rows(view.name === "packet" ? "Packet" : "Memory", memoryRows(view)) ?? []),
      ...state.maps.flatMap((map) => [make("h3", {}, `Map ${map.name}: ${map.summary}`),
        make("table", {}, ...map.entries.map((entry) => row(entry.key ?? "record", entry.value, entry.changed, asNumber(entry.value) && `= ${asNumber(entry.value)}`)))]));
  }
  enableMoves();
  if (state && !state.ended && how) selected = { program: state.program, at: state.pc };
  drawText();
  drawListing();
}

// ---- lessons

const keepName = () => `rawbpf:${lesson ? lesson.name : "own"}`;
// A page of a file may have no storage: then nothing is kept.
function keep() { try { localStorage.setItem(keepName(), text()); } catch { /* nothing is kept */ } }
function kept() { try { return localStorage.getItem(keepName()); } catch { return null; } }

// What is solved is marked in the list, where the browser keeps it.
function solved(name) { try { return localStorage.getItem(`rawbpf:${name}:solved`) !== null; } catch { return false; } }
function markSolved() {
  for (const option of $("lesson").options) {
    const one = LESSONS.find((other) => String(other.number) === option.value);
    if (one) option.textContent = `${one.number} · ${one.title}${solved(one.name) ? " ✓" : ""}`;
  }
}

// A lesson's experiment: its text, which may be changed, and what the emulator makes of it.
function experimentBox({ name, text: source }) {
  const field = make("textarea", { value: source, spellcheck: false, rows: Math.min(24, source.split("\n").length), ariaLabel: name });
  const said = make("pre", { hidden: true, tabIndex: 0 }), button = make("button", { type: "button" }, `Run ${name}`);
  button.addEventListener("click", () => {
    const answer = ask("experiment", ["string", "string"], [field.value, name]);
    const verdict = answer.error ? `${answer.error}${answer.hint ? `\nhint: ${answer.hint}` : ""}`
      : answer.failed ? `${answer.failed} of ${answer.expectations} expectations failed` : answer.expectations ? "what it expects holds" : "";
    said.textContent = [answer.text?.trimEnd(), verdict].filter(Boolean).join("\n");
    said.hidden = false;
  });
  return make("details", { className: "note experiment" }, make("summary", {}, make("code", {}, name)), field, button, said);
}

// One instruction, typed as text or as bytes: what `rawbpf encode` and `decode` show.
function tryBox() {
  const field = document.querySelector("#try"), shown = document.querySelector("#tried");
  field.addEventListener("input", () => {
    const hex = isHex(field.value);
    const answer = ask("try", ["string", "string"], [field.value, hex ? "try.hex" : "try.asm"]);
    const insns = (answer.programs ?? []).flatMap((program) => program.instructions);
    shown.replaceChildren(...(field.value.trim() === "" ? [] : answer.mistakes?.length ? [make("p", { className: "fault" }, answer.mistakes[0].message)]
      : insns.flatMap((insn) => [make("p", {}, make("code", {}, hex ? insn.text ?? insn.undefined : insn.bytes)), bitsOf(insn)])));
  });
}

function open(number, source, given) {
  lesson = LESSONS.find((one) => one.number === number) ?? null;
  const { bytes, packet } = given ?? lesson?.sample ?? { bytes: "", packet: false };
  $("memory").value = bytes;
  $("packet").checked = packet;
  $("lesson").value = lesson ? String(number) : "";
  $("lesson-pane").hidden = $("exercise").hidden = lesson === null;
  $("welcome").hidden = lesson !== null;
  show("report");
  if (lesson) {
    $("lesson-pane").innerHTML = `<h2>${lesson.number} · </h2>${lesson.html}`; // made by page/lessons.py
    $("lesson-pane").firstChild.append(lesson.title);
    const note = $("on-this-page").content.cloneNode(true);
    note.querySelector("details").open = lesson.number === LESSONS[0].number;
    $("lesson-pane").firstChild.after(note, ...lesson.experiments.map(experimentBox));
    $("lesson-pane").scrollTop = 0;
    tryBox();
    $("check").hidden = lesson.check === null;
    $("no-check").hidden = lesson.check !== null;
    $("no-check").textContent = `This exercise (${lesson.file}) needs more than a page has. In a terminal: rawbpf lab start ${lesson.number} DIR`;
  }
  $("text").value = source ?? kept() ?? (lesson ? lesson.exercise : SAMPLE);
  $("text").setSelectionRange(0, 0);
  selected = { program: 0, at: 0 };
  drawText();
  assemble();
}

function goOn() {
  const next = LESSONS.find((one) => one.number === lesson.number + 1);
  return next ? make("p", {}, make("a", { href: `#lesson=${next.number}` }, `Go on with lesson ${next.number}: ${next.title}`)) : null;
}

function check() {
  if (!lesson || lesson.check === null || !engine) return;
  if (timer) assemble();
  const steps = new TextDecoder().decode(Uint8Array.from(atob(lesson.check), (c) => c.charCodeAt(0)));
  const answer = ask("check", ["number", "string", "string", "string", "string"], [lesson.number, lesson.name, lesson.file, text(), steps]);
  if (answer.error) return show("report", make("p", { className: "failed" }, "It can't be checked here: "), make("p", {}, answer.error));
  if (answer.passed) {
    try { localStorage.setItem(`rawbpf:${lesson.name}:solved`, "1"); } catch { /* nothing is kept */ }
    markSolved();
    return show("report", make("p", { className: "passed" }, `Solved: ${answer.expectations} expectation${answer.expectations === 1 ? " holds" : "s hold"}.`),
      make("p", { className: "dim" }, "The challenge has no check: Run shows whether your program does what it asks for."), goOn());
  }
  const findings = answer.findings.map((one) => {
    const place = one.line ? make("button", { type: "button", className: "place" }, `go to line ${one.line}`) : null;
    place?.addEventListener("click", () => goTo(one.line, 1));
    return make("li", {}, one.text, " ", place, one.hint ? make("div", { className: "hint" }, `hint: ${one.hint}`) : null);
  });
  show("report", make("p", { className: "failed" }, answer.failed ? `Not solved yet: ${answer.failed} of ${answer.expectations} expectations failed.` : "Not solved yet."),
    make("ul", {}, ...findings));
}

// ---- links: the program is in the part behind #, which no browser sends anywhere

function encode(string) {
  const bytes = new TextEncoder().encode(string);
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
function decode(string) {
  const binary = atob(string.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)));
}

function link() {
  const parts = new URLSearchParams();
  if (lesson) parts.set("lesson", String(lesson.number));
  if ($("memory").value) parts.set("memory", $("memory").value);
  if ($("packet").checked) parts.set("packet", "1");
  parts.set("program", encode(text()));
  return `${location.href.split("#")[0]}#${parts}`;
}

function follow_link() {
  const parts = new URLSearchParams(location.hash.slice(1));
  let source;
  try {
    if (parts.has("program")) source = decode(parts.get("program"));
  } catch {
    say("The link is damaged: its program can't be read.");
  }
  const number = Number(parts.get("lesson") ?? 0);
  if (number && !LESSONS.some((one) => one.number === number)) say(`There is no lesson ${number}.`);
  const early = engine ? "" : text(); // typed before the page was ready
  open(number, source ?? (early || undefined), parts.has("program") ? { bytes: parts.get("memory") ?? "", packet: parts.has("packet") } : null);
}

async function share() {
  const address = link();
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address);
    say("The link is in the clipboard, and above in the address.");
  } catch {
    say("The link is in the address bar.");
  }
}

// ---- keys

function key(event) {
  const target = event.target, writing = target.matches?.("textarea, input:not([type=checkbox]), select");
  if (event.key === "Escape" && !event.defaultPrevented) {
    (writing ? $("run") : $("text")).focus();
    return;
  }
  if (event.key === "Enter" && event.ctrlKey) {
    event.preventDefault();
    lesson ? check() : move("run");
    return;
  }
  if (writing || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "a") return event.preventDefault(), runAgain();
  const how = { n: "forward", b: "back", c: "run", h: "home" }[event.key];
  if (!how) return;
  event.preventDefault();
  move(how);
}

// ---- the start: what is typed before the engine is there is assembled as soon as it is

function listen() {
  $("text").addEventListener("input", typed);
  $("text").addEventListener("scroll", follow);
  document.addEventListener("selectionchange", () => { if (document.activeElement === $("text") && !timer) selectLine(); });
  $("again").addEventListener("click", runAgain);
  for (const [id, how] of [["home", "home"], ["back", "back"], ["forward", "forward"], ["to-end", "run"]])
    $(id).addEventListener("click", () => move(how));
  for (const id of ["program", "memory", "packet"]) $(id).addEventListener("input", () => { choosePrograms(); enter(); });
  $("lesson").addEventListener("change", () => {
    $("keys").open = false;
    history.replaceState(null, "", $("lesson").value ? `#lesson=${$("lesson").value}` : location.href.split("#")[0]);
    open(Number($("lesson").value));
  });
  $("check").addEventListener("click", check);
  $("anew").addEventListener("click", () => {
    // As if it were typed, so that Ctrl-Z brings back what was there.
    $("text").focus();
    $("text").select();
    document.execCommand("insertText", false, lesson.exercise);
    say("Ctrl-Z brings your text back.");
  });
  $("share").addEventListener("click", share);
  document.addEventListener("keydown", key);
  window.addEventListener("hashchange", follow_link);
}

document.addEventListener("DOMContentLoaded", async () => {
  for (const one of LESSONS) $("lesson").append(make("option", { value: one.number }));
  markSolved();
  listen();
  enableMoves();
  follow_link();
  if (await startEngine()) {
    assemble();
    document.body.dataset.ready = "1"; // for tests
  }
});
