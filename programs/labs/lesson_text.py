"""What the lessons' texts use of Markdown: what the slides and the page are made of."""
import html
import re


def inline(text):
    """`code`, **strong**, *emphasis*, [words](link), <link>; everything else is text."""
    out = ""
    for part in re.split(r"(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\([^)]+\)|<https?://[^>]+>)", text):
        if part.startswith("`") and len(part) > 2:
            out += f"<code>{html.escape(part[1:-1])}</code>"
        elif part.startswith("**") and len(part) > 4:
            out += f"<strong>{inline(part[2:-2])}</strong>"
        elif part.startswith("*") and len(part) > 2:
            out += f"<em>{inline(part[1:-1])}</em>"
        elif re.fullmatch(r"\[[^\]]+\]\([^)]+\)", part):
            out += inline(part[1:part.index("](")])  # where it leads is in the lesson's folder
        else:
            out += html.escape(part)
    return out


def blocks_of(text):
    """(kind, content) of a section: ("p", text), ("list", [(mark, text)]), ("table", [[cell]]), ("code", [line])."""
    out, lines, at = [], text.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("```"):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            out.append(("code", lines[at + 1:end]))
            at = end + 1
        elif line.startswith("|"):
            rows = []
            while at < len(lines) and lines[at].startswith("|"):
                if not re.fullmatch(r"[|\s:-]+", lines[at]):
                    rows.append([c.strip() for c in re.split(r"(?<!\\)\|", lines[at].strip().strip("|"))])
                at += 1
            out.append(("table", rows))
        elif re.match(r"(- |\d+\. )", line):
            items = []
            while at < len(lines) and (re.match(r"(- |\d+\. )", lines[at]) or lines[at].startswith("  ") and lines[at].strip()):
                if re.match(r"(- |\d+\. )", lines[at]):
                    mark, _, rest = lines[at].partition(" ")
                    items.append((mark, rest))
                else:
                    items[-1] = (items[-1][0], items[-1][1] + " " + lines[at].strip())
                at += 1
            out.append(("list", items))
        elif not line.strip():
            at += 1
        else:
            words = []
            while at < len(lines) and lines[at].strip() and not re.match(r"```|\||- |\d+\. ", lines[at]):
                words.append(lines[at].strip())
                at += 1
            out.append(("p", " ".join(words)))
    return out
