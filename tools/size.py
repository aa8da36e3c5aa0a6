"""Print how large the code is, by the measures that docs/architecture.md aims at.

python tools/size.py            this tree
python tools/size.py FOLDER     another one, such as a worktree of an earlier commit
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

MOST_PARAMETERS = 6


def main(root: Path) -> None:
    """Print a line a room, then the totals."""
    source = root / "src" / "tiebreak"
    files = sorted(source.rglob("*.py"))
    rooms: Counter[str] = Counter()
    n_modules: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for path in files:
        text = path.read_text("utf-8")
        room = path.relative_to(source).parts[0] if path.parent != source else "(modules)"
        rooms[room] += len(text.splitlines())
        n_modules[room] += 1
        totals.update(measure(text))
    for room, n_lines in rooms.most_common():
        print(f"{room:20} {n_lines:7,} lines {n_modules[room]:4} modules")
    n_lines = sum(rooms.values())
    print(f"{'all':20} {n_lines:7,} lines {len(files):4} modules, {totals['code']:,} of code")
    print(f"import lines: {totals['imports']:,} ({totals['imports'] / n_lines:.1%})")
    print(f"named tuples: {totals['tuples']}")
    print(f"functions with more than {MOST_PARAMETERS} parameters: {totals['wide']}")
    print(f"options of the command line: {count_options(root / 'src')}")
    tests = [path.read_text("utf-8") for path in (root / "tests").rglob("test_*.py")]
    print(f"tests that pin a sentence: {sum(pinned(text) for text in tests)}")
    print(f"test files that import private modules: {sum(map(is_inside, tests))} of {len(tests)}")


def count_options(source: Path) -> int:
    """Count pairs of a command and one of its options, --help left out.

    Another tree is asked in a process of its own, so that its package is the one that is imported.
    """
    code = (
        "import typer.main; from tiebreak.cli.app import app\n"
        "def count(command):\n"
        "    n = sum(p.param_type_name == 'option' and '--help' not in p.opts\n"
        "            for p in command.params)\n"
        "    return n + sum(map(count, dict(getattr(command, 'commands', {})).values()))\n"
        "print(count(typer.main.get_command(app)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def measure(text: str) -> Counter[str]:
    """Count lines of code and of imports, named tuples and functions of many parameters."""
    found: Counter[str] = Counter()
    tree = ast.parse(text)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found["imports"] += (node.end_lineno or node.lineno) - node.lineno + 1
        if isinstance(node, ast.ClassDef):
            found["tuples"] += any("NamedTuple" in ast.unparse(base) for base in node.bases)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            n = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
            is_method = bool(given.args) and given.args[0].arg in ("self", "cls")
            found["wide"] += n - is_method > MOST_PARAMETERS
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in nothing and token.type != tokenize.ENDMARKER:
            lines |= set(range(token.start[0], token.end[0] + 1))
    found["code"] = len(lines - docstrings)
    return found


def pinned(text: str) -> int:
    """Count test functions that compare with a sentence of a message."""
    pins = re.compile(r'match=r?f?["\']|["\'][^"\']* [^"\']* [^"\']*["\'] in [\w.]*std(?:err|out)')
    functions = re.split(r"\n(?=(?:@|def test_))", text)
    return sum("def test_" in each and bool(pins.search(each)) for each in functions)


def is_inside(text: str) -> bool:
    """Say whether a file imports more than public modules, or private names."""
    modules = re.findall(r"from tiebreak\.([\w.]+) import|import tiebreak\.([\w.]+)", text)
    return any("." in (one or other) for one, other in modules)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
