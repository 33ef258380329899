"""Molecules of MoleculeNet by PyG's loader, and the scaffold split. Both need rdkit."""

import random
from collections import defaultdict

import torch
import torch.nn.functional as F

from ..common.data import loading
from .folds import Split

MOLECULES = {"ESOL": "RMSE", "FreeSolv": "RMSE", "Lipo": "RMSE", "BACE": "ROC AUC", "HIV": "ROC AUC"}
TRAINING, VALIDATION = 0.8, 0.1  # shares of the molecules


def load_molecules(args, name):
    """Graphs, the kinds of their atoms, targets and the split. What PyG tells of an atom are nine codes, each of which becomes
    one-hot over the codes in use."""
    _check_rdkit()
    with loading(args, "MoleculeNet", name) as dataset:
        graphs = [graph for graph in dataset(args.root / "MoleculeNet", name) if graph.num_nodes > 0]
    codes = torch.cat([graph.x for graph in graphs])
    labels = torch.cat([F.one_hot(code.unique(return_inverse=True)[1]) for code in codes.t()], dim=1).float()
    y = torch.cat([graph.y for graph in graphs]).squeeze(1)
    split = Split(*map(torch.tensor, scaffold_split([graph.smiles for graph in graphs])))
    return graphs, labels, y if MOLECULES[name] == "RMSE" else y.long(), split


def scaffold_split(smiles):
    """Numbers of the molecules to train on, to choose by and to test with. Molecules of one Bemis-Murcko scaffold stay
    together; the largest groups come first and the rarest scaffolds are tested, so that the test is of new chemistry. Groups
    of one size come in an order by seed 0: files may be sorted by what is predicted, as that of BACE is."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    groups = defaultdict(list)
    for number, text in enumerate(smiles):
        groups[MurckoScaffold.MurckoScaffoldSmiles(smiles=text, includeChirality=False)].append(number)
    parts = [], [], []
    bounds = TRAINING * len(smiles), (TRAINING + VALIDATION) * len(smiles)
    order = list(groups.values())
    random.Random(0).shuffle(order)
    for group in sorted(order, key=len, reverse=True):
        if len(parts[0]) + len(group) <= bounds[0]:
            parts[0].extend(group)
        elif len(parts[0]) + len(parts[1]) + len(group) <= bounds[1]:
            parts[1].extend(group)
        else:
            parts[2].extend(group)
    return parts


def _check_rdkit():
    try:
        import rdkit  # noqa: F401
    except ImportError:
        raise SystemExit("Molecules need rdkit: pip install rdkit") from None
