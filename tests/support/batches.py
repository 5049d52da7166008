#!/usr/bin/env python3
"""Batches: several source files compiled as one, so that the headers they share are read and instantiated once.

    batches.py ROOT OUTPUT... -- SOURCE...

Each OUTPUT becomes a file that includes up to BATCH of the sources, neighbours first; sources that aren't C++ are left out. A build
with -Dbatches=true does this; it takes less than half the processor time of one without (the headers of the standard library and of
fmt are most of what a small file costs). Most builds of ./dev do, but neither that of clang-tidy (./dev lint) nor people's static one: there each file is compiled by
itself. That a file includes what it uses is proved without a compiler (tests/lint/includes).

Two files can share a batch only when neither sees a name of the other's that is meant for one file: what an unnamed namespace holds,
static functions, constants, types of a .cpp. So the files are read (a list of their tokens, no more). A batch includes the headers of
all its files first, so no header is read behind the names of a file. Then

  - a file without a named namespace (tests have none) gets one around it, which the others don't look into;
  - a name that another file of the batch uses, too, is renamed by a macro around its file, where that is safe: not one that the
    file also has as a member or out of a namespace, nor one that the file's headers use;
  - a macro ends with its file;
  - of the rest a file goes to the first batch with room where no name that it declares for itself, in a namespace, is declared in
    the same namespace, neither by a file nor by a header of the project's; or is used, as a function, type or constant, by a file
    that would find it: one with something in that namespace or in one inside it, without a name of its own that is nearer; and the
    other way round; and where all files without a namespace around them have the same using-directives outside functions;
  - a file that defines macros before it includes stays alone (they would change what the others' headers say).

What this reading misses shows as an error of the compiler ("redefinition of ..."), not as another program: mark a file `// Not batched:
REASON` and it stays alone. An output is written only when its text changes, so an edit compiles one batch again.
"""
import os
import re
import sys

BATCH = 16

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

MACRO = re.compile("[A-Z][A-Z0-9_]{3,}")
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

    headers = {}  # path -> what a header is, as a File

    def __init__(self, path, root):
        self.path = path
        self.root = root
        self.own = {}         # names declared for this file alone -> the namespaces, each a tuple of names
        self.called = set()   # names before a "(", "<", "{" or "::", and names with a capital letter: what could resolve differently
        self.using = set()    # using-directives outside functions
        self.spaces = {()}    # the namespaces in which the file has something, and those of its using-directives
        self.included = []    # the headers outside #if: paths of the project's, <names> of the system's
        self.macros = set()   # that the file defines
        self.theirs = {}      # names that these declare, and what they include -> the namespaces
        self.opened = {()}    # the namespaces that the file opens
        self.renamable = set()
        self.wrapped = False  # in a namespace
        self.foreign = False  # has functions that are declared or called in another file
        self.heard = set()    # names that its headers use
        self.all_names = None
        self.alone = False
        with open(path, encoding="utf-8") as source:
            self.read(source.read())

    def read(self, text):
        self.alone = "// Not batched:" in text
        tokens, included, conditions, wrapped = [], False, 0, self.path.endswith(".cpp")
        for found in TOKEN.finditer(text):
            kind, value = found.lastgroup, found.group()
            if kind == "fence":
                kind = "raw"
            if kind == "directive":
                name = re.match(r"\s*#\s*define\s+(\w+)", value)
                conditions += bool(re.match(r"\s*#\s*if", value)) - bool(re.match(r"\s*#\s*endif", value))
                if name:
                    self.macros.add(name.group(1))
                    # A macro that is defined before a header is meant for that header.
                    self.alone |= not included or bool(re.search(r"^\s*#\s*include", text[found.end():], re.M))
                include = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))?', value)
                if include:
                    included = True
                    header = self.header(include.group(1))
                    if header and (conditions or not header.path.endswith(".h")):
                        self.called |= header.names()
                    elif header and header.path not in self.included:
                        self.included.append(header.path)
                        for name, spaces in [*header.own.items(), *header.theirs.items(), *((macro, [()]) for macro in header.macros)]:
                            self.theirs.setdefault(name, set()).update(spaces)
                    elif not header and not conditions and include.group(2):
                        self.included.append(include.group(2))
                    # A header that can't be included before would be read within the namespace.
                    wrapped &= not conditions and bool(header or include.group(2))
            elif kind in ("word", "mark"):
                tokens.append(value)
            elif kind in ("string", "raw", "number", "char"):
                tokens.append("0")
        self.called |= self.uses(tokens)
        self.declares(tokens)
        if self.path.endswith(".cpp"):
            self.find_remedies(tokens, wrapped)

    def find_remedies(self, tokens, wrapped):
        """What can be renamed, and whether a namespace can be put around the file."""
        elsewhere = {token for before, token in zip(tokens, tokens[1:]) if before in (".", "->", "::", "~", "goto")}
        self.heard = set().union(*(File.headers[path].names() for path in self.included if File.headers.get(path)))
        self.renamable = self.own.keys() - elsewhere - self.heard - self.theirs.keys() - KEYWORDS
        specialised = any(tokens[at:at + 3] == ["template", "<", ">"] for at in range(len(tokens)))
        self.wrapped = wrapped and not self.alone and not self.foreign and self.opened <= {()} and not specialised and not {"extern", "main"} & set(tokens)
        if self.wrapped:
            inside = ("in " + self.path,)
            self.spaces = {inside + space if space in self.opened else space for space in self.spaces}
            self.own = {name: {inside + space for space in spaces} for name, spaces in self.own.items()}

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
            File.headers[path] = File(path, self.root)
        return File.headers[path]

    def names(self):
        """The names that a header uses, with what it includes."""
        if self.all_names is None:
            self.all_names = set()  # one that includes itself
            self.all_names = self.called.union(*(File.headers[path].names() for path in self.included if File.headers.get(path)))
        return self.all_names

    def add(self, name, space):
        self.own.setdefault(name, set()).add(space)

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
        spaces = [()]  # of each open namespace
        directives = set()
        statement = []
        i = 0
        while i < len(tokens):
            token = tokens[i]
            outside = not scopes or scopes[-1] != "inside"
            if tokens[i:i + 2] == ["using", "namespace"]:
                directives.add((spaces[-1], tuple(self.path_of(tokens[i + 2:tokens.index(";", i)]))))
            if token == "}":
                if scopes and scopes.pop() != "inside":
                    spaces.pop()
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
                    scopes.append("own" if end == i + 1 or "own" in scopes else "named")
                    # The names of an inline namespace are those of the one around it.
                    spaces.append(spaces[-1] + (() if statement else tuple(self.path_of(tokens[i + 1:end]))))
                    self.opened.add(spaces[-1])
                    statement = []
                    i = end + 1
                    continue
                if end < len(tokens) and tokens[end] == "=":
                    self.add(tokens[i + 1], spaces[-1])
                while end < len(tokens) and tokens[end] != ";":
                    end += 1
                statement = []
                i = end + 1
                continue
            if token == "{":
                if statement[:1] == ["extern"] and len(statement) == 2:
                    scopes.append("named")
                    spaces.append(spaces[-1])
                else:
                    # A function that another file may call.
                    self.foreign |= "own" not in scopes and "(" in statement and "static" not in statement and not MACRO.fullmatch(statement[0])
                    self.declared(statement, "own" in scopes, spaces[-1])
                    scopes.append("inside")
                statement = []
            elif token == ";":
                # A function that is defined in another file.
                self.foreign |= "own" not in scopes and "(" in statement and "static" not in statement
                self.declared(statement, "own" in scopes, spaces[-1])
                statement = []
            else:
                statement.append(token)
            i += 1
        # A directive's namespace is named from the outermost one, or from one around it.
        self.spaces |= self.opened | {around[:size] + named for around, named in directives for size in range(len(around) + 1)}

    @staticmethod
    def path_of(tokens):
        """a::inline b::c is a::c"""
        return [token for at, token in enumerate(tokens) if token not in (":", "::", "inline") and tokens[at - 1:at] != ["inline"]]

    def declared(self, statement, own, space):
        words = list(statement)
        if words[:2] == ["using", "namespace"]:
            if "literals" not in words[-1]:
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
            if len(words) > 2 and words[2] == "=":
                self.add(words[1], space)
            elif len(words) > 1:
                self.add(words[-1], space)  # using std::x
            return
        if words[0] == "concept" and len(words) > 1:
            self.add(words[1], space)
            return
        if "typedef" in words[:2]:
            self.add(words[-1], space)
            return
        if words[0] in ("struct", "class", "enum", "union"):
            rest = [word for word in words[1:] if word not in ("class", "struct")]
            if rest and rest[0] != ":" and (len(rest) == 1 or rest[1] in (":", "final", "<")):
                self.add(rest[0], space)
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
        if name is None or name in KEYWORDS or before == "::" or MACRO.fullmatch(name):
            return  # TEST_CASE("...") is a macro's
        constant = "(" not in words and ("constexpr" in words or "const" in words or "constinit" in words)
        if own or "static" in words or ("constexpr" in words) or ("extern" not in words and constant):
            self.add(name, space)
            for at, after in zip(words, words[1:]):
                if constant and at == "," and re.match("k[A-Z]", after):
                    self.add(after, space)

    def disturbs(self, other):
        """Would the other file, or a header of its, mean another thing behind this one's names; or this one behind theirs?"""
        fixed = self.own.keys() - self.renamable
        for name in fixed & other.own.keys():
            if () in self.own[name] | other.own[name] or self.own[name] & other.own[name]:
                return True
        for name in fixed & other.called:
            for space in self.own[name]:
                nearer = [own for own in other.own.get(name, ()) if len(own) > len(space)]
                for place in other.spaces:
                    if within(place, space) and not any(within(place, own) for own in nearer):
                        return True
        if not (fixed - self.heard).isdisjoint(name for name in other.heard if name[0].islower()):
            return True  # a function of a header's
        for name in fixed & other.theirs.keys():
            for space in self.own[name]:
                for theirs in other.theirs[name] - self.theirs.get(name, set()):
                    if theirs == space or within(theirs, space) and any(within(place, theirs) for place in self.spaces):
                        return True
        return False

    def ambiguous_beside(self, other):
        """Does a header of the other's bring a second meaning of a type or constant by a using-directive of this file's?"""
        for name in self.called & self.theirs.keys() & other.theirs.keys():
            visible = self.spaces | {()}
            if self.using and self.theirs[name] & visible and (other.theirs[name] - self.theirs[name]) & visible:
                return True
        return False

    def fits(self, other):
        if self.ambiguous_beside(other) or other.ambiguous_beside(self):
            return False
        if self.alone or other.alone or self.macros & other.theirs.keys() or other.macros & self.theirs.keys():
            return False
        if self.wrapped and other.wrapped:
            return True
        if not (self.wrapped or self.using <= other.using) or not (other.wrapped or other.using <= self.using):
            return False
        return (self.wrapped or not self.disturbs(other)) and (other.wrapped or not other.disturbs(self))

    def renamed_beside(self, files):
        """The names that get a macro in a batch with these."""
        others = [file for file in files if file is not self]
        return sorted(name for name in self.renamable if not self.wrapped and
                      any(name in other.own or name in other.called or name in other.heard for other in others))


def within(place, space):
    return place[:len(space)] == space


def batches(files, count):
    """The files in so many batches, each in the first that has room and that it fits into."""
    made = [[] for _ in range(count)]
    homeless = []
    for file in files:
        for batch in made:
            if len(batch) < BATCH and all(file.fits(other) for other in batch):
                batch.append(file)
                break
        else:
            homeless.append(file)
    if homeless:
        sys.exit("batches.py: no batch for %s: raise the number of batches" % " ".join(file.path for file in homeless))
    return made


def main():
    root, rest = sys.argv[1], sys.argv[2:]
    outputs, sources = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    files = [File(source, root) for source in sources if source.endswith(".cpp")]
    for output, batch in zip(outputs, batches(files, len(outputs))):
        text = "// Made by tests/support/batches.py.\n"
        if len(batch) > 1:
            for header in dict.fromkeys(header for file in batch for header in file.included):
                text += "#include %s\n" % (header if header[0] == "<" else '"%s"' % os.path.relpath(header, root))
        for number, file in enumerate(batch):
            renamed = file.renamed_beside(batch)
            text += "".join(f"#define {name} {name}_of_{number}\n" for name in renamed)
            # Sources are named from the root, what the build has made (this runs in its folder) from the batch.
            made = os.path.abspath(file.path).startswith(os.getcwd() + os.sep)
            name = os.path.relpath(file.path, os.path.dirname(output) if made else root)
            wrap = file.wrapped and len(batch) > 1
            text += f"namespace of_{number} {{\n" * wrap + f'#include "{name}"\n' + "}\n" * wrap
            text += "".join(f"#undef {name}\n" for name in [*renamed, *sorted(file.macros)] if len(batch) > 1)
        if not os.path.exists(output) or open(output, encoding="utf-8").read() != text:
            with open(output, "w", encoding="utf-8") as out:
                out.write(text)


if __name__ == "__main__":
    main()
