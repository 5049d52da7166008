"""The lessons as the script lessons.js: text as HTML, the exercise, and the check where it can be done without a kernel.

The checks are in base64, so that nobody reads the hidden inputs by chance; who wants to read them can. Marks are given by
`rawbpf lab check`."""
import base64
import html
import json
import os
import re

# Links of the text that leave the lesson's folder lead to nothing on a USB stick: their words stay.
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def inline(text):
    """`code`, **bold**, *emphasis*, [links](https://...)."""
    out = []
    for n, part in enumerate(text.split("`")):
        if n % 2:
            out.append(f"<code>{html.escape(part)}</code>")
            continue
        part = html.escape(part, quote=False)
        part = LINK.sub(lambda m: f'<a href="{m[2]}">{m[1]}</a>' if m[2].startswith("https://") else m[1], part)
        part = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", part)
        out.append(re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?!\w)", r"<em>\1</em>", part))
    return "".join(out)


def table(rows):
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in rows]
    out = ["<table>", "<tr>" + "".join(f"<th>{inline(cell)}</th>" for cell in cells[0]) + "</tr>"]
    out += ["<tr>" + "".join(f"<td>{inline(cell)}</td>" for cell in row) + "</tr>" for row in cells[2:]]
    return "\n".join(out + ["</table>"])


ITEM = re.compile(r"^(?:[-*]|(\d+)\.) +(.*)")


def to_html(text):
    """What the lessons' texts use of Markdown: headings, paragraphs, lists, tables, blocks of code."""
    out, lines, at = [], text.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        if fence := re.match(r"^```(\S*)(.*)", line):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("```")), len(lines))
            code = html.escape("\n".join(lines[at + 1:end]), quote=False)
            out.append(f'<pre tabindex="0" class="{fence[1] or "picture"}">{code}</pre>')
            at = end + 1
        elif line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            out.append(f"<h{level + 1}>{inline(line.lstrip('# '))}</h{level + 1}>")
            at += 1
        elif line.startswith("|"):
            end = next((n for n in range(at, len(lines)) if not lines[n].startswith("|")), len(lines))
            out.append(table(lines[at:end]))
            at = end
        elif first := ITEM.match(line):
            tag = "ol" if first[1] else "ul"
            out.append(f"<{tag}>")
            while at < len(lines) and (item := ITEM.match(lines[at])):
                words, at = [item[2]], at + 1
                while at < len(lines) and lines[at].startswith("  ") and lines[at].strip():
                    words.append(lines[at].strip())
                    at += 1
                out.append(f"<li>{inline(' '.join(words))}</li>")
            out.append(f"</{tag}>")
        elif line.strip():
            end = next((n for n in range(at, len(lines)) if not lines[n].strip() or lines[n].startswith(("```", "|", "#"))
                        or (n > at and ITEM.match(lines[n]))), len(lines))
            out.append(f"<p>{inline(' '.join(lines[at:end]))}</p>")
            at = end
        else:
            at += 1
    return "\n".join(out)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


STEP = re.compile(r"^(packet|run)\b.*?\b((?:[0-9a-fA-F]{2})+)\b", re.M)


def sample(folder):
    """What the program is tried on at first: the bytes of the first step of the lesson's own experiments that has some."""
    for file in sorted(os.listdir(folder)):
        if file.endswith(".exp") and (step := STEP.search(read(f"{folder}/{file}"))):
            return {"bytes": re.sub(r"(..)(?=.)", r"\1 ", step[2]), "packet": step[1] == "packet"}
    return {"bytes": "", "packet": False}


def lesson(folder, name):
    text = read(f"{folder}/{name}/lesson.md")
    heading = re.match(r"# (\d+) · (.*)", text)
    file = next(file for file in sorted(os.listdir(f"{folder}/{name}/exercise")) if file.startswith("lab."))
    out = {"number": int(heading[1]), "name": name, "title": heading[2], "html": to_html(text.split("\n", 1)[1]), "file": file,
           "exercise": read(f"{folder}/{name}/exercise/{file}"), "check": None, "sample": sample(f"{folder}/{name}")}
    check = f"{folder}/{name}/check/check.exp"
    if file.endswith((".asm", ".hex")) and os.path.exists(check) and "# needs: kernel" not in read(check):
        out["check"] = base64.b64encode(read(check).encode()).decode()
    return out


def script(folder):
    names = sorted(name for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}/lesson.md"))
    rows = ",\n".join(json.dumps(lesson(folder, name), ensure_ascii=False) for name in names)
    return f"// Made by page/lessons.py of the lessons.\n\"use strict\";\nconst LESSONS = [\n{rows}\n];\n"
