"""A recipe's variables, of the part of bitbake's language that rawbpf's recipe uses: NAME = "...", ?=, ??=, +=, FLAG[...], ${NAME}.

What it doesn't know is an error, so that a recipe that says more isn't half read. Machine-made overrides (:append) aren't known.
"""
import re

# Where a recipe's files go; a layer may say otherwise.
FOLDERS = {"prefix": "/usr", "bindir": "/usr/bin", "datadir": "/usr/share", "libdir": "/usr/lib", "includedir": "/usr/include"}
LINE = re.compile(r'([A-Za-z_][\w:${}-]*)(?:\[(\w+)\])? *(\?\?=|\?=|\+=|=) *"(.*)"')


class Recipe:
    def __init__(self, known):
        self.values, self.weak, self.flags = {**FOLDERS, **known}, {}, {}

    def take(self, line):
        found = LINE.fullmatch(line)
        if not found:
            raise ValueError(f"a line of the recipe that isn't understood: {line}")
        name, flag, how, text = found.groups()
        name = self.expand(name)
        if flag:
            self.flags[name, flag] = text
        elif how == "??=":
            self.weak[name] = text  # the last one counts, where nothing else is said
        elif how == "+=":
            self.values[name] = f"{self.values[name]} {text}" if name in self.values else text
        elif how == "=" or name not in self.values:
            self.values[name] = text

    def expand(self, text):
        return re.sub(r"\$\{([\w:-]+)\}", lambda m: self.value(m[1]), text)

    def value(self, name):
        """The variable's text, expanded; empty where nothing sets it."""
        return self.expand(self.values.get(name, self.weak.get(name, "")))

    def flag(self, name, flag):
        return self.expand(self.flags.get((name, flag), ""))

    def configured(self):
        """What PACKAGECONFIG gives to configure: of each feature its first or its second text."""
        chosen, out = self.value("PACKAGECONFIG").split(), []
        for name, feature in self.flags:
            if name == "PACKAGECONFIG":
                on, off = self.flag(name, feature).split(",")[:2]
                out += (on if feature in chosen else off).split()
        return out


def read(path, known):
    recipe = Recipe(known)
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"\\\n\s*", " ", f.read())
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "inherit ")):
            recipe.take(line.strip())
    return recipe
