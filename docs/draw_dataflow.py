"""Draws the picture of the data flow, docs/images/dataflow.svg: `python docs/draw_dataflow.py`. Greys only, for print too."""

from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 940, 500
BOX = (196, 132)
COLUMNS, ROWS = (16, 254, 492, 728), (58, 306)
SANS, MONO = "Helvetica, Arial, sans-serif", "Menlo, Consolas, monospace"

# column, row, name, what it makes (lines), the files (lines)
STAGES = [
    (0, 0, "Data", ["x  [N, d],  edge_index,", "edge_weight,  batch"], ["torch_geometric"]),
    (
        1,
        0,
        "1  Fields",
        ["Fields:  index  [2, E],", "weight  [E, K]"],
        ["fields/receptive_fields.py", "transforms.py"],
    ),
    (
        2,
        0,
        "2  Encoding",
        ["clamp, project, norm; then", "y  [N, K, C, 2 d + 1]"],
        ["encoding/gaussian_encode.py", "encoding/describe.py"],
    ),
    (
        3,
        0,
        "3  Filter",
        ["one linear map of all scales", "and components  [N, out]"],
        ["nn/conv/gaussian_filter.py", "nn/conv/gic_conv.py"],
    ),
    (
        3,
        1,
        "4  Coarsen",
        ["clusters; max over each,", "edges add up  [C', out]"],
        ["coarsening/select.py", "nn/pool/vigmm_pool.py"],
    ),
    (
        2,
        1,
        "5  Readout",
        ["max, mean, encoding", "of every level  [B, ...]"],
        ["nn/aggr/gaussian_readout.py"],
    ),
    (1, 1, "Output", ["linear layers:  [B, classes]", "(without P: one per node)"], ["nn/models/gic.py"]),
]


def text(x, y, content, size=13, weight="normal", family=SANS, fill="#222", anchor="middle"):
    style = f'font-family="{family}" font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {style} xml:space="preserve">{escape(content)}</text>'


def box(column, row, name, made, files):
    x, y, (width, height) = COLUMNS[column], ROWS[row], BOX
    end = not name[0].isdigit()  # where data comes from and goes to
    fill = "#ffffff" if end else "#ececec"
    parts = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="#444" stroke-width="1.5"/>'
    ]
    middle = x + width / 2
    parts.append(text(middle, y + 26, name, 17, "bold", fill="#000"))
    parts += [text(middle, y + 50 + 18 * i, line) for i, line in enumerate(made)]
    parts += [text(middle, y + 98 + 17 * i, line, 11, family=MONO, fill="#444") for i, line in enumerate(files)]
    return parts


def arrow(points, label=None, at=None, dashed=False):
    path = "M" + " L".join(f"{x} {y}" for x, y in points)
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    parts = [f'<path d="{path}" fill="none" stroke="#222" stroke-width="2"{dash} marker-end="url(#head)"/>']
    return parts + ([text(*at, label, 12.5)] if label else [])


def frame(x, y, width, height, label):
    rect = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="12" fill="none" stroke="#888" stroke-dasharray="3 4"/>'
    )
    return [rect, text(x + 14, y - 8, label, 14, "bold", MONO, "#444", "start")]


def draw():
    width, height = BOX
    top, bottom = ROWS[0] + height / 2, ROWS[1] + height / 2
    parts = []
    parts += frame(COLUMNS[1] - 12, ROWS[0] - 16, COLUMNS[3] + width - COLUMNS[1] + 24, height + 32, "GICConv")
    parts += frame(COLUMNS[3] - 12, ROWS[1] - 16, width + 24, height + 32, "")
    parts.append(text(COLUMNS[3] + 2, ROWS[1] + height + 36, "VIGMMPool", 14, "bold", MONO, "#444", "start"))
    for stage in STAGES:
        parts += box(*stage)
    for left in (0, 1, 2):
        parts += arrow([(COLUMNS[left] + width, top), (COLUMNS[left + 1] - 3, top)])
    filtered = COLUMNS[3] + width / 2
    parts += arrow([(filtered, ROWS[0] + height), (filtered, ROWS[1] - 3)])
    between = ["norm, ReLU,", "then P(0.5)"]
    parts += [text(filtered + 8, 240 + 17 * i, line, 12.5, anchor="start") for i, line in enumerate(between)]
    # The coarse graph is the next graph.
    back = COLUMNS[1] + width / 2
    label = "coarse graph: the next C"
    parts += arrow(
        [(COLUMNS[3] + 36, ROWS[1]), (COLUMNS[3] + 36, 230), (back, 230), (back, ROWS[0] + height + 3)], label, (470, 223)
    )
    # What each convolution gives is read out.
    read = COLUMNS[2] + width / 2
    parts += arrow(
        [(COLUMNS[3] + 66, ROWS[0] + height), (COLUMNS[3] + 66, 262), (read, 262), (read, ROWS[1] - 3)],
        "each level: the last P",
        (684, 255),
        dashed=True,
    )
    parts += arrow([(COLUMNS[2], bottom), (COLUMNS[1] + width + 3, bottom)])
    note = [
        "Files are below torch_gic/.",
        "Each operation: a reference in",
        "PyTorch; kernels in C++ (csrc/)",
        "and Triton (kernels/triton/).",
    ]
    parts += [text(16, ROWS[1] + 34 + 19 * i, line, 12.5, anchor="start", fill="#444") for i, line in enumerate(note)]
    head = (
        '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
    )
    defs = f'<defs>{head}<path d="M0 0 L10 5 L0 10 z" fill="#222"/></marker></defs>'
    body = "\n".join([defs, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">\n{body}\n</svg>\n'


if __name__ == "__main__":
    Path(__file__).with_name("images").joinpath("dataflow.svg").write_text(draw())
