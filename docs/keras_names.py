#!/usr/bin/env python3
"""keras_names.py <source folder> <folder of generated headers> [--check]: makes docs/keras_names.md, of

- what Keras has: tests/oracle/keras/names.txt, and names_of_cases.txt, which make_names.py there reads from Keras;
- what is here: the public headers of stet/keras/ and the declarations of ops;
- why the rest is not: docs/keras_missing.txt, written by hand.

With --check nothing is written: a page that would change is an error. A name that is neither here nor in
keras_missing.txt is one always, and so is a line there for a name that is here, or that Keras does not have.
"""

import collections
import fnmatch
import pathlib
import re
import sys

root, generated = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
check = "--check" in sys.argv[3:]
oracle = root / "tests/oracle/keras"
errors = []

# ---- What is here.


def closing(text, at):
    """Where the bracket that opens at `at` closes."""
    pairs = {"(": ")", "{": "}", "[": "]", "<": ">"}
    opens, closes = text[at], pairs[text[at]]
    depth = 0
    for i in range(at, len(text)):
        if text[i] == opens:
            depth += 1
        elif text[i] == closes and not (closes == ">" and text[i - 1] == "-"):
            depth -= 1
            if depth == 0:
                return i
    return len(text) - 1


def without(text, brackets):
    """The text with what these brackets hold left out."""
    out, i = "", 0
    while i < len(text):
        if text[i] in brackets:
            i = closing(text, i) + 1
            continue
        out += text[i]
        i += 1
    return out


def split(text):
    """The parts between commas that stand in no bracket."""
    parts, part, i = [], "", 0
    while i < len(text):
        if text[i] in "({[<":
            end = closing(text, i)
            part += text[i : end + 1]
            i = end + 1
            continue
        if text[i] == ",":
            parts.append(part)
            part = ""
        else:
            part += text[i]
        i += 1
    return [p.strip() for p in parts + [part] if p.strip()]


def declared(text):
    """(type, name) of a parameter or a member."""
    words = re.findall(r"[\w:]+", without(text.split("=")[0], "<{("))
    return (words[-2].split("::")[-1], words[-1]) if len(words) > 1 else (words[-1].split("::")[-1], "")


class Scope:
    """A class, a struct or a namespace."""

    def __init__(self, name, bases=()):
        self.name, self.bases = name, bases
        self.members = []  # names of data, in order
        self.functions = collections.defaultdict(list)  # name -> parameters of each overload


scopes = collections.defaultdict(lambda: Scope(""))  # "keras::losses" and "keras::losses::Huber"


def take(statement, scope):
    statement = re.sub(r"^\s*((public|protected|private)\s*:\s*)+", "", statement).strip()
    statement = re.sub(r"^template\s*<", "<", statement)
    if statement.startswith("<"):
        statement = statement[closing(statement, 0) + 1 :].strip()
    statement = re.sub(r"^requires\s+[\w:]+\s*<", "<", statement)
    if statement.startswith("<"):
        statement = statement[closing(statement, 0) + 1 :].strip()
    if re.match(r"requires\s*\(", statement):
        statement = statement[closing(statement, statement.index("(")) + 1 :].strip()
    if not statement or re.match(r"(friend|typedef|static_assert|enum|concept|extern)\b", statement):
        return
    if using := re.match(r"using\s+([\w:]+)$", statement):
        scope.functions[using[1].split("::")[-1]].append([])
        return
    if statement.startswith("using") or "operator" in statement.split("(")[0]:
        return
    head = re.split(r"=|\{", without(statement, "<"))[0]
    if function := re.search(r"(~?\w+)\s*\(", head):
        if function[1].startswith("~") or "= delete" in statement:
            return
        start = statement.index("(", statement.index(function[1]))
        parameters = split(statement[start + 1 : closing(statement, start)])
        scope.functions[function[1]].append([declared(p) for p in parameters])
    else:
        for part in split(without(statement, "<{(")):
            scope.members.append(declared("type " + part)[1])


def read(text, path, scope):
    """Everything that a namespace, or a class, has between its braces."""
    statement, i = "", 0
    while i < len(text):
        c = text[i]
        if c == ";":
            take(statement, scope)
            statement = ""
        elif c == "(":
            end = closing(text, i)
            statement += text[i : end + 1]
            i = end
        elif c == "{":
            end = closing(text, i)
            inner = text[i + 1 : end]
            found = re.search(r"\b(?:class|struct)\s+(?:STET_API\s+)?(\w+)\s*(?::([^{]*))?$", statement)
            if space := re.search(r"\bnamespace\s+([\w:]+)\s*$", statement):
                name = (path + "::" + space[1]).strip(":").replace("stet::keras", "keras")
                scopes[name].name = name
                read(inner, name, scopes[name])
                statement = ""
            elif found and "=" not in statement and "(" not in statement:
                name = path + "::" + found[1]
                bases = re.findall(r"public\s+([\w:]+)", found[2] or "")
                scopes[name] = Scope(name, [b.split("::")[-1] for b in bases])
                read(inner, name, scopes[name])
                statement = ""
            elif "(" in statement and not re.search(r"[\w>]\s*=\s*$|[:,]\s*[\w]+\s*$", statement):
                take(statement, scope)  # and its body
                statement = ""
            else:
                statement += "{}"
            i = end
        else:
            statement += c
        i += 1


def read_headers():
    texts, macros = [], {}
    for path in sorted((root / "stet/keras").glob("*.h")):
        text = path.read_text()
        if "Not a public header" in text[:600] or "hidden header" in text[:600]:
            continue
        text = re.sub(r"//[^\n]*", "", text).replace("\\\n", " ")
        for name, parameters, body in re.findall(r"^#define (\w+)(\([^)]*\))?(.*)$", text, re.M):
            if "class " in body or "OPTIONS" in name:
                macros[name] = ([p.strip() for p in parameters.strip("()").split(",") if p.strip()], body)
        texts.append(re.sub(r"^#.*$", "", text, flags=re.M))
    for text in texts:
        for name, (parameters, body) in macros.items():

            def expand(use):
                out = body
                for parameter, value in zip(parameters, split(use[1] or "")):
                    out = re.sub(rf"\b{parameter}\b", value, out)
                return out

            text = re.sub(rf"\b{name}\b" + (r"\(([^)]*)\)" if parameters else "()"), expand, text)
        text = re.sub(r"\bSTET_(HANDLE|FIELDS|MEMBERS)\([^)]*\)", "", text)
        read(text, "", scopes[""])


def ops():
    functions = (generated / "stet/ops/functions.def").read_text()
    return set(re.findall(r'^STET_FUNCTION[A-Z_]*\(R"doc\((\w+)\)doc"', functions, re.M))


read_headers()
op_names = ops()


def members_of(name):
    """The members of a struct of options, by its last name; with those of its bases."""
    for path, scope in scopes.items():
        if path.split("::")[-1] == name and (name.endswith("Options") or name == "Batch"):
            return scope.members + [m for base in scope.bases for m in members_of(base)]
    return None


def arguments_of(overloads, keras):
    """Which of Keras's arguments some overload takes: by name, or by position."""
    out = set()
    for parameters in overloads:
        position = 0
        for kind, name in parameters:
            kind = "Batch" if kind == "Data" else kind
            if kind == "Where" or name == "where":
                continue
            members = members_of(kind)
            if members is not None:
                out |= set(members)
                continue
            if name not in keras and position < (keras + ["*"]).index("*"):
                name = keras[position]
            out.add(name)
            position += 1
    return out & set(keras)


SPACES = {
    "layers": ["keras"],
    "losses": ["keras::losses", "keras"],
    "metrics": ["keras::metrics", "keras"],
    "optimizers": ["keras"],
    "optimizers.schedules": ["keras::schedules", "keras"],
    "initializers": ["keras::initializers", "keras"],
    "regularizers": ["keras::regularizers", "keras"],
    "constraints": ["keras::constraints", "keras"],
    "callbacks": ["keras::callbacks", "keras"],
    "activations": ["keras::activations"],
    "Layer": ["keras::Layer", "keras::CustomLayer"],
    "Model": ["keras::Model", "keras::CustomModel"],
    "Sequential": ["keras::Sequential", "keras::Model"],
}


def find(path):
    """Overloads of the class or function with this name, or None."""
    if path in scopes:
        name = path.split("::")[-1]
        own = scopes[path].functions.get(name)
        return own if own is not None else [[]]
    space, _, name = path.rpartition("::")
    if space in scopes and name in scopes[space].functions:
        return scopes[space].functions[name]
    if space in scopes and name in scopes[space].members:
        return [[]]
    return [[]] if space == "stet" and name in op_names else None


def here(group, name):
    for space in SPACES[group]:
        if (overloads := find(f"{space}::{name}")) is not None:
            return f"{space}::{name}", overloads
    if group == "activations" and name in op_names:
        return name, [[]]
    return None, None


# ---- What Keras has.

Name = collections.namedtuple("Name", "group name kind arguments")
names, aliases = [], collections.defaultdict(list)
version = re.search(r"Keras (\S+?)\.?\n", (oracle / "names.txt").read_text())[1]
for line in (oracle / "names.txt").read_text().splitlines():
    words = line.split()
    if line.startswith("#"):
        continue
    if words[0] == "alias":
        aliases[words[3]].append(words[1].rpartition(".")[2])
    else:
        group, _, name = words[0].rpartition(".")
        names.append(Name(group, name, words[1], words[2:]))

compared = collections.defaultdict(collections.Counter)
known = set()
for line in (oracle / "names_of_cases.txt").read_text().splitlines():
    if line.startswith("#"):
        continue
    family, case, of = line.split("\t")
    known.add((family, case))
    for name in of.split():
        compared[name][family] += 1
stored = {
    (path.stem, line[5:])
    for path in oracle.glob("*.txt")
    if path.stem != "models"  # whole files: what their layers compute has cases of its own
    for line in path.read_text().splitlines()
    if line.startswith("case ")
}
for family, case in sorted(stored ^ known):
    where = "names_of_cases.txt does not have" if (family, case) in stored else f"{family}.txt does not have"
    errors.append(f"{where} the case {family} {case}: run tests/oracle/keras/make_names.py")

# ---- Why the rest is not here: `pattern pattern …: why`, and `name = name here`.

renamed, reasons = {}, []
for number, line in enumerate((root / "docs/keras_missing.txt").read_text().splitlines(), 1):
    if not line.strip() or line.startswith("#"):
        continue
    if change := re.match(r"(\S+) = (\S+)$", line):
        renamed[change[1]] = change[2]
        if find(change[2]) is None:
            errors.append(f"docs/keras_missing.txt:{number}: there is no {change[2]}")
        continue
    patterns, _, why = line.partition(": ")
    reasons.append((number, patterns.split(), why.strip()))

used = collections.Counter()


def reason_of(full):
    for number, patterns, why in reasons:
        for pattern in patterns:
            if fnmatch.fnmatchcase(full, pattern):
                used[number, pattern] += 1
                return why
    return None


tests = {p.stem: p.read_text() for p in sorted(root.glob("tests/**/keras*_test.cpp"))}


def evidence(full, path, kind):
    """Which stored cases it is compared with; otherwise the test that names it most often."""
    if compared[full]:
        return ", ".join(f"{family} {count}" for family, count in sorted(compared[full].items()))
    name = path.split("::")[-1]
    word = re.compile(rf"\b{name}\(" if kind in ("method", "attribute") else rf"\b{name}\b")
    count, test = max(((len(word.findall(text)), name) for name, text in tests.items()), default=(0, ""))
    return f"no; {test}" if count else "no"


Row = collections.namedtuple("Row", "names path evidence lacks why")
TITLES = {
    "layers": "Layers",
    "losses": "Losses",
    "metrics": "Metrics",
    "optimizers": "Optimizers",
    "optimizers.schedules": "Schedules",
    "initializers": "Initializers",
    "regularizers": "Regularizers",
    "constraints": "Constraints",
    "callbacks": "Callbacks",
    "activations": "Activations",
    "Layer": "What all layers have",
    "Model": "What models have besides",
    "Sequential": "What Sequential has besides",
}


taken = collections.defaultdict(set)  # of Keras's arguments, by group and name


def rows_of(group):
    rows, missing = [], collections.defaultdict(list)
    for one in (n for n in names if n.group == group):
        full = f"{group}.{one.name}"
        everything = [one.name] + sorted(aliases[full])
        if full in renamed:
            path, overloads = renamed[full], find(renamed[full]) or [[]]
        else:
            path, overloads = here(group, one.name)
        why = reason_of(full)
        if path is None:
            if why is None:
                errors.append(f"keras.{full} is not here, and docs/keras_missing.txt does not say why")
            missing[why or "?"] += everything
            continue
        if why is not None:
            errors.append(f"docs/keras_missing.txt says why keras.{full} is not here, but it is: {path}")
        lacks = []
        if one.kind in ("class", "method"):
            takes = arguments_of(overloads, one.arguments)
            taken[group, one.name] = takes
            lacks = [a for a in one.arguments if a not in takes and a != "*"]
        rows.append(Row(everything, path, evidence(full, path, one.kind), lacks, ""))
    return rows, [Row(m, "", "", [], why) for why, m in missing.items()]


def section(group):
    rows, missing = rows_of(group)
    known_arguments = collections.Counter(
        a for r in rows for n in names if n.group == group and n.name == r.names[0] and n.kind == "class" for a in n.arguments
    )
    lacking = collections.Counter(a for r in rows for a in r.lacks)
    # What hardly any class takes is said once.
    holders = {a: known_arguments[a] - count for a, count in lacking.items()}
    common = [a for a, count in lacking.items() if count > 2 and count > 10 * holders[a] and holders[a] >= 0]
    out = [f"## {TITLES[group]}", ""]
    if none := sorted(a for a in common if not holders[a]):
        out += ["Nothing here takes " + " ".join(f"`{a}`" for a in none) + ".", ""]
    rare = collections.defaultdict(list)
    for a in sorted(set(common) - set(none)):
        rare[" ".join(f"`{r.names[0]}`" for r in rows if a in taken[group, r.names[0]])].append(f"`{a}`")
    for takers, some in rare.items():
        out += [f"Only {takers} take{'s' * (' ' not in takers)} {' '.join(some)}.", ""]
    out += ["| keras." + group + " | here | compared with Keras | without |", "|---|---|---|---|"]
    for r in rows:
        lacks = " ".join(f"`{a}`" for a in r.lacks if a not in common)
        out.append(f"| {' '.join(f'`{n}`' for n in r.names)} | `{r.path}` | {r.evidence} | {lacks} |")
    out.append("")
    if missing:
        out += ["| not here | why |", "|---|---|"]
        out += [f"| {' '.join(f'`{n}`' for n in r.names)} | {r.why} |" for r in missing]
        out.append("")
    count = sum(len(r.names) for r in rows), sum(len(r.names) for r in missing)
    with_values = sum(len(r.names) for r in rows if not r.evidence.startswith("no"))
    return out, f"| [{TITLES[group]}](#{TITLES[group].lower().replace(' ', '-')}) | {sum(count)} | {count[0]} | {with_values} | {count[1]} |"


sections = [section(group) for group in TITLES]
for number, patterns, _ in reasons:
    for pattern in patterns:
        if not used[number, pattern]:
            errors.append(f"docs/keras_missing.txt:{number}: Keras has no {pattern} that this line says why of")
for full in renamed:
    if not any(f"{n.group}.{n.name}" == full for n in names):
        errors.append(f"docs/keras_missing.txt: Keras has no {full}")

page = f"""# Names of Keras

Every public name of Keras {version} in these groups, and what it is called here; made by `make docs` from Keras's own list, the headers and the
stored cases, and checked by the tests. *Compared with Keras*: by which files of `tests/oracle/keras/` and how many of their cases, values and
gradients that Keras made; where there are none, the test that uses it most. *Without*: which of Keras's arguments are not there. How to use them:
[layers, models and training](keras.md).

| | names of Keras | here | compared with values of Keras | not here |
|---|---|---|---|---|
""" + "\n".join(line for _, line in sections) + "\n\n" + "\n".join("\n".join(out) for out, _ in sections)
page = page.rstrip() + "\n"

target = root / "docs/keras_names.md"
if not check:
    target.write_text(page)
elif not target.exists() or target.read_text() != page:
    errors.append("docs/keras_names.md is not what its command makes now: make docs")
for error in errors:
    print(error)
sys.exit(1 if errors else 0)
