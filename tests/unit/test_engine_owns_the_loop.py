"""Only the engines and `Responses` itself walk over blocks or prepared parts, so that any engine can do it."""

import ast

from source import MODULES as EVERY
from source import ROOT, named, nodes

OWNERS = [ROOT / "data" / "responses.py", *(ROOT / "engine").glob("*.py")]
# Those of a path, and of an analysis, are other parts.
OTHERS = [ROOT / "reading" / "parquet.py", ROOT / "reading" / "formats.py"]
OTHERS += [ROOT / "report" / f"{name}.py" for name in ("facets", "fit", "items", "methods")]
MODULES = [path for path in EVERY if path not in OWNERS + OTHERS]
HELD = ("blocks", "parts")  # attributes that only an engine may look into
# At the edge an engine is chosen: by `threads=` of estimators and of Andersen's test, the update of a bank, the command
# line; and logs are read by threads before there are responses. Where answers stay in a database there is no other.
EDGE = {"estimators/base.py", "inference/groups/model_tests.py", "bank/update.py", "cli/calibrate.py"}
EDGE |= {"eval_logs/collect.py", "sql/__init__.py"}


def loops_over_parts(source):
    """Lines that iterate over, unpack or index an attribute `.blocks` or `.parts`."""
    if not any(isinstance(node, ast.Attribute) and node.attr in HELD for node in source):
        return []
    lines = []

    def held(node):
        return any(isinstance(inner, ast.Attribute) and inner.attr in HELD for inner in ast.walk(node))

    # Calls are what engines are for: `data.parts.sum(kernel)` looks into nothing.
    def looked_into(node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ENGINE_CALLS:
            return any(held(argument) for argument in node.args)
        if isinstance(node, ast.Attribute) and node.attr in HELD:
            return True
        return any(looked_into(inner) for inner in ast.iter_child_nodes(node))

    for node in source:
        iterated = []
        if isinstance(node, ast.For | ast.comprehension):
            iterated = [node.iter]
        elif isinstance(node, ast.Subscript | ast.Starred):
            iterated = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TAKERS:
            iterated = list(node.args)
        lines += [getattr(part, "lineno", 0) for part in iterated if looked_into(part)]
    return lines


ENGINE_CALLS = ("sum", "map", "prepare", "map_and_sum", "gather")
TAKERS = ("list", "tuple", "zip", "enumerate", "iter", "next", "map", "sorted", "reversed")


def test_no_loop_over_blocks():
    found = {named(path): loops_over_parts(nodes(path)) for path in MODULES}
    found = {name: lines for name, lines in found.items() if lines}
    assert not found, f"these lines walk over blocks; ask responses.sum, map, gather or prepare: {found}"


def test_engines_are_made_at_the_edge():
    for path in MODULES:
        made = [
            node.lineno
            for node in nodes(path)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Engine")
        ]
        assert not made or named(path) in EDGE, f"{named(path)} makes an engine in line {made}; ask the responses"


def test_the_check_sees_loops():
    for line in (
        "for block in responses.blocks: pass",
        "[f(b) for b in self.responses.blocks]",
        "x = responses.blocks[0]",
        "list(chain.parts)",
        "zip(responses.blocks, other)",
        "sum(block.n for block in responses.blocks)",
    ):
        assert loops_over_parts(list(ast.walk(ast.parse(line)))), line
    for line in ("x = data.parts.sum(kernel, beta)", "for a in data.parts.map(kernel): pass", "f(data.parts)"):
        assert not loops_over_parts(list(ast.walk(ast.parse(line)))), line
