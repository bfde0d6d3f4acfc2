"""The public names of Keras, by inspection: names.txt. Which of them each stored case is of: names_of_cases.txt.

names.txt has a line `name kind arguments…` for every name, those after a * by keyword only, and `alias name = name`. For
the second file the scripts beside this one run again, without writing, and every object of Keras that they make or call
themselves is noted for the case that is added next. That takes a while: `make_names.py losses metrics` runs
make_losses.py and make_metrics.py alone and keeps what is known of the others.
"""

import ast
import functools
import inspect
import pathlib
import runpy
import subprocess
import sys
import textwrap

import values

import jax
import keras

FOLDER = pathlib.Path(__file__).resolve().parent
GROUPS = {
    "layers": keras.layers,
    "losses": keras.losses,
    "metrics": keras.metrics,
    "optimizers": keras.optimizers,
    "optimizers.schedules": keras.optimizers.schedules,
    "initializers": keras.initializers,
    "regularizers": keras.regularizers,
    "constraints": keras.constraints,
    "callbacks": keras.callbacks,
    "activations": keras.activations,
}


def public(module):
    """What a group has, by name: classes and functions, but no other modules."""
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {name: thing for name, thing in found.items() if not inspect.ismodule(thing)}


def handed_on(function):
    """The keywords that a constructor gives to that of its base itself."""
    calls = [n for n in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))) if isinstance(n, ast.Call)]
    return {k.arg for c in calls if getattr(c.func, "attr", "") == "__init__" for k in c.keywords if k.arg}


def arguments(thing):
    """The names of the arguments, with those that **kwargs hands to a base class and that have a default there; without
    the state that steps take under JAX."""
    chain = [thing]
    if inspect.isclass(thing):
        chain = [base.__init__ for base in thing.__mro__ if "__init__" in vars(base)]
    out = []
    for i, function in enumerate(chain):
        open_ended = False
        for p in inspect.signature(function).parameters.values():
            open_ended |= p.kind == p.VAR_KEYWORD
            if p.name in ("self", "state") or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) or p.name in out:
                continue
            if i and (p.default is p.empty or p.name in handed_on(chain[i - 1])):
                continue  # which the subclass gives
            if p.name == "factor" and i and not getattr(thing, "_USE_BASE_FACTOR", True):
                continue  # which it refuses
            if p.kind == p.KEYWORD_ONLY and "*" not in out:
                out.append("*")
            out.append(p.name)
        if not open_ended or function is keras.Layer.__init__:
            break
    return out


def kind(thing):
    return "class" if inspect.isclass(thing) else "function"


def names():
    lines = []
    for group, module in GROUPS.items():
        things = public(module)
        first = {}
        for name in sorted(things, key=lambda name: (name != things[name].__name__, name)):
            thing = things[name]
            if id(thing) in first:
                lines.append(f"alias {group}.{name} = {group}.{first[id(thing)]}")
            else:
                first[id(thing)] = name
                lines.append(" ".join([f"{group}.{name}", kind(thing)] + arguments(thing)))
    seen = set()
    for owner in (keras.Layer, keras.Model, keras.Sequential):
        for name in dir(owner):
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            thing = inspect.getattr_static(owner, name)
            thing = thing.__func__ if isinstance(thing, (classmethod, staticmethod)) else thing
            what = ["method"] + arguments(thing) if inspect.isfunction(thing) else ["attribute"]
            lines.append(" ".join([f"{owner.__name__}.{name}"] + what))
    return lines


def watch(noted):
    """From now on, `noted` gets the names of what files of this folder make or call."""
    known = {}  # by object its names, one in each group that has it: losses.huber is metrics.huber, too
    for group, module in GROUPS.items():
        mine = {}
        for name, thing in public(module).items():
            if name == thing.__name__ or id(thing) not in mine:
                mine[id(thing)] = f"{group}.{name}"
        for thing, name in mine.items():
            known.setdefault(thing, set()).add(name)

    def note(thing):
        noted.update(known.get(id(type(thing)), ()))
        # What a class is made around is compared with it.
        for attribute in ("fn", "_fn"):
            noted.update(known.get(id(getattr(thing, attribute, None)), ()))
        if isinstance(thing, keras.layers.Activation):
            noted.update(known.get(id(thing.activation), ()))

    def by_a_script():
        return pathlib.Path(sys._getframe(2).f_code.co_filename).resolve().parent == FOLDER

    def watched(method):
        @functools.wraps(method)
        def call(self, *arguments, **options):
            mine = by_a_script()
            out = method(self, *arguments, **options)
            if mine:
                note(self)
            return out

        call.__signature__ = inspect.signature(method)
        return call

    def watched_function(function):
        @functools.wraps(function)
        def call(*arguments, **options):
            if by_a_script():
                noted.update(known[id(function)])
            return function(*arguments, **options)

        return call

    done = set()
    for module in GROUPS.values():
        for name, thing in public(module).items():
            if not inspect.isclass(thing):
                setattr(module, name, watched_function(thing))
                continue
            for base in thing.__mro__:
                for method in ("__init__", "__call__", "stateless_call", "update_state", "apply", "stateless_apply"):
                    made = vars(base).get(method)
                    if (base, method) in done or not inspect.isfunction(made) or base.__module__ == "builtins":
                        continue
                    done.add((base, method))
                    setattr(base, method, watched(made))


def print_cases(script):
    """Runs one of the scripts: prints its family, its cases and what they are of, to stderr."""
    noted, lines = set(), []
    watch(noted)

    def add(self, name, **tensors):
        lines.append("\t".join([self.path.stem, name, " ".join(sorted(noted))]))
        noted.clear()

    values.Cases.add = add
    values.Cases.write = lambda self: None
    # Nobody looks at gradients here, and they take most of the time.
    jax.grad = lambda f, argnums=0: lambda *given: jax.tree.map(
        lambda x: x * 0, tuple(given[i] for i in argnums) if isinstance(argnums, tuple) else given[argnums]
    )
    runpy.run_path(str(FOLDER / script))
    sys.stderr.write("\n".join(lines) + "\n")


def cases(families):
    """The lines of all families; those of other families than these as they were."""
    path = FOLDER / "names_of_cases.txt"
    before = path.read_text().splitlines() if path.exists() else []
    lines = []
    for script in sorted(FOLDER.glob("make_*.py")):
        family = script.stem.removeprefix("make_")
        if family == "names":
            continue
        if families and family not in families:
            lines += [line for line in before if line.startswith(family + "\t")]
            continue
        out = subprocess.run([sys.executable, __file__, "--print", script.name], capture_output=True, text=True)
        if out.returncode:
            sys.exit(out.stderr)
        lines += [line for line in out.stderr.splitlines() if line.count("\t") == 2]
    return lines


if sys.argv[1:2] == ["--print"]:
    print_cases(sys.argv[2])
    sys.exit()
head = f"# Made by make_names.py with Keras {keras.__version__}."
(FOLDER / "names.txt").write_text("\n".join([head] + names()) + "\n")
lines = cases(set(sys.argv[1:]))
(FOLDER / "names_of_cases.txt").write_text("\n".join([head] + lines) + "\n")
print(len(lines), "cases")
