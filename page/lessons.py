"""The lessons as the script lessons.js: text as HTML, the exercise, and the check where it can be done without a kernel.

The checks are in base64, so that nobody reads the hidden inputs by chance; who wants to read them can. Marks are given by
`rawbpf lab check`."""
import base64
import html
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs/labs"))
from lesson_text import blocks_of, inline  # noqa: E402


HERE_TOO = re.compile(r"\$ (?:printf .* \| )?rawbpf (asm|disasm|encode|decode|isa|verify(?!.*--kernel)|explain|exec|step|run --emulate|lab (start|check))\b")


def on_this_page(line):
    """Whether the page can do what a line of a block of code says; what isn't a command is only to be read."""
    return not line.startswith("$ ") or bool(HERE_TOO.match(line))


def show(block):
    kind, content = block
    if kind == "p":
        return f"<p>{inline(content)}</p>"
    if kind == "code":
        text = html.escape("\n".join(content), quote=False)
        mark = '<span class="elsewhere">terminal</span>' if not all(map(on_this_page, content)) else ""
        return f'<pre tabindex="0">{mark}{text}</pre>'
    if kind == "list":
        tag = "ol" if content[0][0] != "-" else "ul"
        return f"<{tag}>" + "".join(f"<li>{inline(text)}</li>" for _, text in content) + f"</{tag}>"
    rows = ["".join(f"<{tag}>{inline(cell)}</{tag}>" for cell in row) for tag, row in zip(["th"] + ["td"] * len(content), content)]
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def to_html(text):
    """Sections, each with its heading: its blocks one after the other. A heading within a block of code is none."""
    out, section, fenced = [], [], False
    for line in [*text.split("\n"), "# "]:
        fenced ^= line.startswith("```")
        if fenced or not re.match(r"#+ ", line):
            section.append(line)
            continue
        out += map(show, blocks_of("\n".join(section)))
        level = len(line) - len(line.lstrip("#"))
        out.append(f"<h{level + 1}>{inline(line.lstrip('# '))}</h{level + 1}>")
        section = []
    return "\n".join(out[:-1])


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


STEP = re.compile(r"^(packet|run)\b.*?\b((?:[0-9a-fA-F]{2})+)\b", re.M)
COMMAND = re.compile(r"^\$ rawbpf (?:exec|step)\b(.*?)\b(?:lab\.\w+) ((?:[0-9a-f]{2}){4,})$", re.M)


def sample(folder):
    """What the program is tried on at first: the bytes that the text gives it first, or the first step of the lesson's own experiments that has some."""
    if command := COMMAND.search(read(f"{folder}/lesson.md")):
        return {"bytes": re.sub(r"(..)(?=.)", r"\1 ", command[2]), "packet": "--packet" in command[1]}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".exp") and (step := STEP.search(read(f"{folder}/{file}"))):
            return {"bytes": re.sub(r"(..)(?=.)", r"\1 ", step[2]), "packet": step[1] == "packet"}
    return {"bytes": "", "packet": False}


def in_the_emulator(experiment):
    """Whether all of its steps can be carried out there."""
    return not re.search(r"^(workload|wait|on|object|expect rejected)\b|^\w+:\S", experiment, re.M)


def lesson(folder, name):
    text = read(f"{folder}/{name}/lesson.md")
    heading = re.match(r"# (\d+) · (.*)", text)
    file = next(file for file in sorted(os.listdir(f"{folder}/{name}/exercise")) if file.startswith("lab."))
    out = {"number": int(heading[1]), "name": name, "title": heading[2], "html": to_html(text.split("\n", 1)[1]), "file": file,
           "exercise": read(f"{folder}/{name}/exercise/{file}"), "check": None, "sample": sample(f"{folder}/{name}"),
           "experiments": [{"name": file, "text": read(f"{folder}/{name}/{file}")} for file in sorted(os.listdir(f"{folder}/{name}"))
                           if file.endswith(".exp") and in_the_emulator(read(f"{folder}/{name}/{file}"))]}
    check = f"{folder}/{name}/check/check.exp"
    if file.endswith((".asm", ".hex")) and os.path.exists(check) and "# needs: kernel" not in read(check):
        out["check"] = base64.b64encode(read(check).encode()).decode()
    return out


def script(folder):
    names = sorted(name for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}/lesson.md"))
    rows = ",\n".join(json.dumps(lesson(folder, name), ensure_ascii=False) for name in names)
    return f"// Made by page/lessons.py of the lessons.\n\"use strict\";\nconst LESSONS = [\n{rows}\n];\n"
