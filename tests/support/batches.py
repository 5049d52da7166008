#!/usr/bin/env python3
"""Batches: several source files compiled as one, so that the headers they share are read and instantiated once.

    batches.py [--sized] ROOT OUTPUT... -- SOURCE...

Each OUTPUT becomes a file that includes up to BATCH or LARGE_BATCH of the sources, neighbours first; sources that aren't C++ are left out. A build
with -Dbatches=true does this; it takes less than half the processor time of one without (the headers of the standard library and of
fmt are most of what a small file costs). Most builds of ./dev do, but neither that of clang-tidy (./dev lint) nor people's static one: there each file is compiled by
itself. That a file includes what it uses is proved without a compiler (tests/lint/includes).

Two files can share a batch only when neither sees a name of the other's that is meant for one file: what an unnamed namespace holds,
static functions, constants, types of a .cpp. So the files are read (a list of their tokens, no more). A batch includes the headers of all its
files first, so that what stands around a file doesn't change what its headers say, and

  - a name that another file declares or calls, too, or names as a type or constant there or in the project's headers that it includes, gets another
    one by a macro around its file: `#define row row_of_3`. A name that the file also has as a member (`.row`), or out of a namespace
    (`x::row`), or from a header, stays what it is: that would be renamed as well. Beside such a name the other file can't be, unless both say the same `using`;
  - a file without anything for another file to call (most tests) gets a namespace around it: `namespace of_3 { ... }`. Nothing
    in there has to be renamed, and its using-directives end there.

A file goes to the first batch with room where, beside that,

  - all files have the same using-directives outside functions (literals' aside);
  - all files ask to be optimised in the same way (`#pragma GCC optimize`, which counts until the batch's end);
  - no file defines macros before it includes (they would change what the others' headers say).

With --sized a library's files are joined less: those with a table (`x.def`), and those that say `using`, stay apart. Programs take its members one
by one: what is joined comes along whole, with what the linker can't leave out. (The core, whose size is stated: 288 KB in a program instead of 300.)

What this reading misses shows as an error of the compiler ("redefinition of ...", "ambiguous"), not as another program: mark a file
`// Not batched: REASON` and it stays alone. An output is written only when its text changes, so an edit compiles one batch again.
"""
import os
import re
import sys

BATCH = 16  # of tests; a change of a file compiles all of its batch again
SIZED_BATCH = 32  # of a library with --sized
LARGE_BATCH = 48  # of a library: takes a tenth less again. (Tests say `using namespace`: the more headers stand before them, the more is ambiguous.)

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>(?:u8|u|U|L)?R"(?P<fence>[^()\\\s]*)\(.*?\)(?P=fence)")
  | (?P<string>(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*")
  | (?P<number>\d(?:[\w.]|'(?=\w)|[eEpP][+-])*)
  | (?P<char>'(?:[^'\\\n]|\\.)*')
  | (?P<directive>(?m:^)[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>::|->|\S)
""", re.X | re.S)

KEYWORDS = set("if for while switch return sizeof alignof decltype static_assert requires noexcept alignas catch and or not "
               "new delete co_await throw case else do const constexpr static inline auto void bool char int long short unsigned signed "
               "float double struct class enum union using namespace template typename typedef extern operator explicit this true "
               "false nullptr default break continue public private protected friend virtual override final mutable volatile".split())


def without_attributes(words):
    """The statement without [[...]], alignas(...) and __attribute__((...))."""
    kept, at = [], 0
    while at < len(words):
        start = {"alignas": 1, "__attribute__": 1}.get(words[at])
        if start is None and words[at:at + 2] == ["[", "["]:
            start = 0
        if start is None:
            kept.append(words[at])
            at += 1
            continue
        at += start
        depth = 0
        while at < len(words):
            depth += (words[at] in "([") - (words[at] in ")]")
            at += 1
            if depth == 0:
                break
    return kept


class File:
    """What one source says of names, for the question whether it can share a batch."""

    headers = {}  # path -> a header of the project's, as a File

    def __init__(self, path, root, sized=False):
        self.path = path
        self.root = root
        self.sized = sized
        self.own = set()      # names declared for this file alone
        self.taken = {}       # of these, what `using a::b` and `using b = c` say, by name: two files may say the same
        self.called = set()   # names before a "(", "<", "{" or "::", and names with a capital letter: what could resolve differently
        self.heard = set()    # such names in the project's headers that it includes
        self.using = set()    # using-directives outside functions
        self.macros = set()
        self.optimized = set() # what it says by `#pragma GCC optimize`
        self.first = []       # what a batch can include before its files: headers outside #if, as they stand behind #include
        self.shared = not path.endswith(".cpp")  # has something for another file, or that belongs into its namespace
        self.alone = False
        with open(path, encoding="utf-8") as source:
            tokens = self.read(source.read())
        self.heard_types = {name for name in self.heard if re.match("k?[A-Z]", name)}  # and constants
        self.wrapped = not self.shared and not self.alone
        # What another file of the batch has to stand: names beside its own text, names beside its headers, using-directives.
        elsewhere = {name for before, name in zip(tokens, tokens[1:]) if before in (".", "->", "::", "~", "goto")}
        self.beside_text = self.own & (elsewhere | self.heard)
        self.beside_headers = self.own & elsewhere - self.heard  # what its own headers have stands beside it already
        self.spread = self.using
        if self.wrapped:
            self.called -= self.own
            self.own = self.beside_text = self.beside_headers = self.spread = set()

    def read(self, text):
        self.alone = "// Not batched:" in text
        tokens, included, conditions = [], False, 0
        for found in TOKEN.finditer(text):
            kind, value = found.lastgroup, found.group()
            if kind == "fence":
                kind = "raw"
            if kind == "directive":
                conditions += bool(re.match(r"\s*#\s*if", value)) - bool(re.match(r"\s*#\s*endif", value))
                asked = re.match(r"\s*#\s*pragma\s+GCC\s+optimize\s*\(([^)]*)\)", value)
                if asked:
                    self.optimized.add(asked.group(1))
                name = re.match(r"\s*#\s*define\s+(\w+)", value)
                if name:
                    self.macros.add(name.group(1))
                    # A macro that is defined before a header is meant for that header.
                    # A table (x.def) is the file's own text.
                    table = r'(?!\s*"[^"]*\.def")' if not self.sized else ""
                    self.alone |= not included or bool(re.search(rf"^\s*#\s*include{table}", text[found.end():], re.M))
                include = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))?', value)
                if include:
                    included = True
                    header = self.header(include.group(1))
                    if header:
                        self.heard |= header.called | header.heard | header.macros
                        if header.path.endswith(".def"):
                            self.heard |= header.words  # of whatever kind: its rows are a macro's
                    if not conditions and (include.group(2) or header and header.path.endswith(".h")):
                        self.first.append(include.group(2) or '"%s"' % os.path.relpath(header.path, self.root))
                    else:
                        self.shared = True  # its text belongs to this file
            elif kind in ("word", "mark"):
                tokens.append(value)
            elif kind in ("string", "raw", "number", "char"):
                tokens.append("0")
        self.words = {token for token in tokens if token[0].isalpha() or token[0] == "_"} if self.path.endswith(".def") else set()
        self.called |= self.uses(tokens)
        self.declares(tokens)
        return tokens

    def header(self, name):
        """A header of the project's; None for a system's."""
        for path in (os.path.join(os.path.dirname(self.path), name or ""), os.path.join(self.root, name or "")):
            if name and os.path.isfile(path):
                break
        else:
            return None
        path = os.path.realpath(path)
        if path not in File.headers:
            File.headers[path] = None  # one that includes itself
            File.headers[path] = File(path, self.root, self.sized)
        return File.headers[path]

    @staticmethod
    def uses(tokens):
        called = set()
        for i, token in enumerate(tokens):
            if not (token[0].isalpha() or token[0] == "_") or token in KEYWORDS:
                continue
            if i and tokens[i - 1] in (".", "->", "::"):
                continue
            after = tokens[i + 1] if i + 1 < len(tokens) else ""
            if after in ("(", "<", "{", "::") or token[0].isupper() or re.match("k[A-Z]", token):
                called.add(token)
        return called

    def declares(self, tokens):
        scopes = []  # of each open brace: "named", "own" or "inside" (a body, a type, an initializer)
        statement = []
        i = 0
        while i < len(tokens):
            token = tokens[i]
            outside = not scopes or scopes[-1] != "inside"
            if token == "}":
                if scopes:
                    scopes.pop()
                if not scopes or scopes[-1] != "inside":
                    statement = []
                i += 1
                continue
            if not outside:
                if token == "{":
                    scopes.append("inside")
                i += 1
                continue
            if token == "namespace" and (not statement or statement == ["inline"]):
                end = i
                while end < len(tokens) and tokens[end] not in ("{", ";", "="):
                    end += 1
                if end < len(tokens) and tokens[end] == "{":
                    self.shared |= end > i + 1 or bool(statement)
                    scopes.append("own" if end == i + 1 or "own" in scopes else "named")
                    statement = []
                    i = end + 1
                    continue
                if end < len(tokens) and tokens[end] == "=":
                    self.own.add(tokens[i + 1])
                while end < len(tokens) and tokens[end] != ";":
                    end += 1
                statement = []
                i = end + 1
                continue
            if token == "{":
                if statement[:1] == ["extern"] and len(statement) == 2:
                    self.shared = True
                    scopes.append("named")
                else:
                    self.declared(statement, "own" in scopes)
                    scopes.append("inside")
                statement = []
            elif token == ";":
                self.declared(statement, "own" in scopes)
                statement = []
            else:
                statement.append(token)
            i += 1

    def declared(self, statement, own):
        words = list(statement)
        if not own and "static" not in words:
            # A function (TEST_CASE("...") is a macro's), a declaration of what is elsewhere, a specialisation.
            self.shared |= "(" in words and not words[0].isupper() or "extern" in words or words[:3] == ["template", "<", ">"]
        if words[:2] == ["using", "namespace"]:
            if self.sized or not words[-1].endswith("_literals"):  # only operator""sv and such come of it
                self.using.add("".join(words[2:]))
            return
        while words[:1] == ["template"]:
            depth, end = 0, 1
            while end < len(words):
                depth += (words[end] == "<") - (words[end] == ">")
                end += 1
                if depth == 0:
                    break
            words = words[end:]
        words = without_attributes(words)
        if not words:
            return
        if words[0] == "using":
            if len(words) > 1:
                name = words[1] if len(words) > 2 and words[2] == "=" else words[-1]  # using std::x
                self.own.add(name)
                if not self.sized:
                    self.taken[name] = words
            return
        if words[0] in ("struct", "class", "enum", "union"):
            rest = [word for word in words[1:] if word not in ("class", "struct")]
            if not rest or rest[0] == ":":
                return  # without a name; what follows the colon is another's
            if len(rest) == 1 or rest[1] in (":", "final", "<"):
                self.own.add(rest[0])
                return
        # A function's or a variable's name stands before the first of ( = [ { ; outside template arguments.
        depth, name, before = 0, None, None
        for at, word in enumerate(words):
            if word == "<" and at and (words[at - 1][0].isalpha() or words[at - 1][0] == "_"):
                depth += 1
            elif word == ">" and depth:
                depth -= 1
            elif depth == 0 and word in ("(", "=", "["):
                break
            elif depth == 0 and (word[0].isalpha() or word[0] == "_"):
                before, name = (words[at - 1] if at else None), word
        if name is None or name in KEYWORDS or before in (None, "::"):
            return  # TEST_CASE("...") is a macro's
        constant = "(" not in words[:words.index("=")] if "=" in words else "(" not in words
        constant &= "constexpr" in words or "const" in words or "constinit" in words
        if own or "static" in words or ("constexpr" in words) or ("extern" not in words and constant):
            self.own.add(name)
            depth = 0
            for at, after in zip(words, words[1:]):
                depth += (at in "([{") - (at in ")]}")
                if constant and depth == 0 and at == "," and re.match("k[A-Z]", after):
                    self.own.add(after)

    def fits(self, other):
        return not self.alone and not other.alone and self.optimized == other.optimized and self.leaves(other) and other.leaves(self)

    def leaves(self, other):
        """Does the other file mean the same beside this one?"""
        return (self.spread <= other.using and self.beside_headers.isdisjoint(other.heard_types) and
                all(self.taken.get(name) == other.taken.get(name, ()) for names in (other.own, other.macros, other.called) for name in self.beside_text & names))

    def renamed_beside(self, files):
        """The names that get another one in a batch with these."""
        others = [file for file in files if file is not self]
        return sorted(name for name in self.own - self.beside_text if any(name in names for other in others for names in (other.own, other.called, other.heard)))


def batches(files, count):
    """The files in so many batches, each in the first that has room and that it fits into; in a batch they stand in their order. Those
    that fit beside the fewest others choose first: where they came last, a dozen stayed alone, each with all headers for itself. (Tests keep
    their order: beside their neighbours' headers less is ambiguous. So does a library with --sized.)"""
    fits = {file: {other for other in files if other is not file and file.fits(other)} for file in files}
    made = [[] for _ in range(count)]
    homeless = []
    tests = sum(file.wrapped for file in files) * 2 > len(files)
    for file in sorted(files, key=lambda file: len(fits[file])) if files[:1] and not files[0].sized and not tests else files:
        for batch in made:
            if len(batch) < (BATCH if file.wrapped else SIZED_BATCH if file.sized else LARGE_BATCH) and fits[file].issuperset(batch):
                batch.append(file)
                break
        else:
            homeless.append(file)
    if homeless:
        sys.exit("batches.py: no batch for %s: raise the number of batches" % " ".join(file.path for file in homeless))
    place = {file: number for number, file in enumerate(files)}
    return [sorted(batch, key=place.get) for batch in made]


def text_of(batch, root, output):
    """The file that is compiled in place of these."""
    text = "// Made by tests/support/batches.py.\n"
    together = len(batch) > 1
    if together:
        text += "".join(f"#include {header}\n" for header in dict.fromkeys(header for file in batch for header in file.first))
    for number, file in enumerate(batch):
        # Sources are named from the root, what the build has made (this runs in its folder) from the batch.
        made = os.path.abspath(file.path).startswith(os.getcwd() + os.sep)
        name = os.path.relpath(file.path, os.path.dirname(output) if made else root)
        include = f'#include "{name}"\n'
        if together and file.wrapped:
            include = f"namespace of_{number} {{\n{include}}}\n"
        if together:
            renamed = file.renamed_beside(batch)
            include = "".join(f"#define {word} {word}_of_{number}\n" for word in renamed) + include
            include += "".join(f"#undef {word}\n" for word in renamed + sorted(file.macros))
        text += include
    return text


def main():
    arguments = sys.argv[1:]
    sized = arguments[:1] == ["--sized"]
    root, *rest = arguments[sized:]
    outputs, sources = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    files = [File(source, root, sized) for source in sources if source.endswith(".cpp")]
    for output, batch in zip(outputs, batches(files, len(outputs))):
        text = text_of(batch, root, output)
        if not os.path.exists(output) or open(output, encoding="utf-8").read() != text:
            with open(output, "w", encoding="utf-8") as out:
                out.write(text)


if __name__ == "__main__":
    main()
