"""One of each, over the syntax tree: one place where labels meet, no statistics in the commands."""

import ast

from source import MODULES, ROOT, named, nodes

# Where labels of two sources meet; and where the labels of one source are numbered as its pieces arrive.
MATCHING = {"data/labels.py", "reading/wide_builder.py", "eval_logs/collect.py"}


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def lookups(source: list[ast.AST]) -> list[int]:
    """Lines that make a dictionary from labels to positions, however it is written."""
    found = []
    for node in source:
        if isinstance(node, ast.DictComp):
            first = node.generators[0]
            numbers = {"enumerate", "range", "count", "arange"}
            # {label: k for k, label in enumerate(labels)}, {label: k for label, k in zip(labels, range(n))}
            inner = [first.iter, *(first.iter.args if isinstance(first.iter, ast.Call) else [])]
            counted = [part for part in inner if _called(part) in numbers]
            names = [one.id for one in ast.walk(first.target) if isinstance(one, ast.Name)]
            if counted and isinstance(node.value, ast.Name) and isinstance(node.key, ast.Name | ast.Call):
                position = names[0] if _called(first.iter) == "enumerate" else names[-1]
                found += [node.lineno] * (node.value.id == position)
        elif isinstance(node, ast.Call) and _called(node) == "dict":  # dict(zip(labels, range(n)))
            pairs = [one for one in ast.walk(node) if _called(one) == "zip"]
            last = [one.args[-1] for one in pairs if isinstance(one, ast.Call) and one.args]
            found += [node.lineno for one in last if _called(one) in ("range", "count", "arange")]
        elif isinstance(node, ast.Call) and _called(node) == "setdefault":  # known.setdefault(label, len(known))
            found += [node.lineno] * any(_called(one) == "len" for one in node.args[1:])
        elif (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and _called(node.value) == "len"
        ):
            found += [node.lineno]  # known[label] = len(known)
    return found


def test_labels_meet_in_one_function() -> None:
    found = {named(path): lookups(nodes(path)) for path in MODULES if named(path) not in MATCHING}
    found = {name: lines for name, lines in found.items() if lines}
    assert not found, f"these lines look labels up; ask responses.labels.positions: {found}"


def test_the_check_sees_lookups() -> None:
    for line in (
        "{label: k for k, label in enumerate(labels)}",
        "{str(label): k for k, label in enumerate(labels.tolist())}",
        "{label: k for label, k in zip(labels, range(9))}",
        "dict(zip(labels, range(len(labels))))",
        "dict(zip(labels, np.arange(9), strict=True))",
        "code = known.setdefault(label, len(known))",
        "known[label] = len(known)",
    ):
        assert lookups(list(ast.walk(ast.parse(line)))), line
    for line in ("dict(zip(names, sizes))", "{k: label for k, label in enumerate(labels)}", "rows.setdefault(key, [])"):
        assert not lookups(list(ast.walk(ast.parse(line)))), line


KERNELS = ("spectral_irt.chain", "spectral_irt.inference", "spectral_irt.persons", "spectral_irt.ability")
# `compare` runs a comparison, which is no part of the analysis of one calibration; `check` has no calibration at all.
OWN = {
    "cli/compare.py": {"spectral_irt.inference.prediction"},
    "cli/calibrate.py": {"spectral_irt.inference.groups.hausman"},
}


def test_commands_compute_no_statistic() -> None:
    for path in sorted((ROOT / "cli").glob("*.py")):
        imported = set()
        for node in nodes(path):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, "imports are absolute"
                inside = node.module == "spectral_irt"
                imported |= {f"{node.module}.{alias.name}" if inside else str(node.module) for alias in node.names}
        kernels = {
            name for name in imported if name in KERNELS or name.startswith(tuple(f"{room}." for room in KERNELS))
        }
        kernels -= OWN.get(named(path), set())
        assert not kernels, f"{named(path)} imports {sorted(kernels)}; ask an Analysis"
