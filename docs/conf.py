"""Sphinx builds the documentation offline: ``make docs``. Nothing is fetched, neither here nor by a browser that reads it."""

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the docstrings of the checkout, not those of an older installation
os.environ["PYTHONPATH"] = str(ROOT)  # and its code in the tutorials

from torch_gic._version import __version__  # noqa: E402

project = "torch_gic"
author = "The torch_gic developers"
copyright = author
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
exclude_patterns = ["build", "jupyter_execute"]
html_theme = "furo"
html_title = f"torch_gic {version}"
html_theme_options = {"navigation_with_keys": True}
html_show_copyright = False

# MathJax in one file, glyphs included. The package brings all of it for a CDN-like folder, which nobody here needs.
MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
html_static_path = ["static", str(MATHJAX)]
html_css_files = ["torch_gic.css"]
mathjax_path = MATHJAX.name

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# Tutorials are kept without outputs: these are made here, by the code that is documented.
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_output_stderr = "remove"  # progress bars, and the message that kernels are compiled

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types
napoleon_custom_sections = ["Shapes"]  # of PyG's docstrings
napoleon_numpy_docstring = False


def point_to_folders(app, path, docname, source):
    """benchmark/RESULTS.md links to a folder and to the plan, which GitHub shows and Sphinx has no page for."""
    text = source[0].replace("[`results`](results)", "`benchmark/results`")
    source[0] = text.replace("[the plan](PLAN.md)", "the plan, `benchmark/PLAN.md`")


def setup(app):
    app.connect("include-read", point_to_folders)
