"""Runs the cells of the notebook, and compares what comes out with what is in it."""

import ast
import json
import sys
from pathlib import Path

notebook = json.loads(Path(__file__).with_name("report.ipynb").read_text(encoding="utf-8"))
names, wrong = {}, 0
for cell in notebook["cells"]:
    if cell["cell_type"] != "code":
        continue
    *statements, last = ast.parse("".join(cell["source"])).body
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    wanted = "".join(cell["outputs"][0]["data"]["text/plain"])
    try:
        got = repr(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    except Exception as error:
        got = repr(error)
    if got != wanted:
        wrong += 1
        print(f"cell {cell['execution_count']}: {got}, not {wanted}")
sys.exit(wrong > 0)
