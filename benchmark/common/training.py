"""Training for all benchmarks of accuracy: for some epochs or for a time, and the trials of settings."""

import math
import time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score, root_mean_squared_error
from sklearn.model_selection import ParameterSampler

LOOKS = 20  # at validation data, of training for a time
GRID = {"lr": [5e-4, 1e-3, 3e-3], "width": [32, 64, 128], "layers": [2, 3, 4], "dropout": [0.0, 0.2, 0.5]}
DEFAULT = {"lr": 1e-3, "width": 64, "layers": 3, "dropout": 0.0}  # the first trial


class Recipe(NamedTuple):
    """How to optimise: AdamW along a cosine, or, with `printed`, the paper's SGD."""

    epochs: int
    lr: float = 1e-3
    weight_decay: float = 1e-2
    printed: bool = False

    def make(self, parameters):
        if self.printed:
            return torch.optim.SGD(parameters, lr=0.1, momentum=0.95), None
        optimizer = torch.optim.AdamW(parameters, lr=self.lr, weight_decay=self.weight_decay)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.epochs)


def train(model, batches, loss, judge, recipe):
    """Trains, and ends with the weights of the epoch that `judge` prefers: the one with the best score, and among equals the
    one with the lowest loss.

    Args:
        model: The network.
        batches: Called in each epoch, gives its batches.
        loss: Gives the mean loss of a batch and the number of examples in it.
        judge: Gives the score (higher is better) and the loss on other data than what is trained on.
        recipe: The `Recipe`.
    """
    optimizer, scheduler = recipe.make(model.parameters())
    auxiliary = [module for module in model.modules() if hasattr(module, "auxiliary_loss")]
    seconds, curves, best = 0.0, {"loss": [], "score": []}, None
    for epoch in range(1, recipe.epochs + 1):
        start, total, count = time.perf_counter(), 0.0, 0
        model.train()
        for batch in batches():
            optimizer.zero_grad()
            value, size = loss(batch)
            (value + sum(module.auxiliary_loss for module in auxiliary)).backward()
            optimizer.step()
            total, count = total + value.item() * size, count + size
        if scheduler:
            scheduler.step()
        seconds += time.perf_counter() - start
        model.eval()
        with torch.no_grad():
            score, other = judge()
        curves["loss"].append(round(total / count, 5))
        curves["score"].append(round(score, 5))
        if best is None or (score, -other) > best[:2]:
            best = score, -other, epoch, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best[3])
    return {
        "validation": best[0],
        "epoch": best[2],
        "seconds": round(seconds / recipe.epochs, 4),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "curves": curves,
    }


def loss_of(out, y, metric):
    """Cross entropy, or the squared error of a regression."""
    return F.mse_loss(out.squeeze(1), y) if metric == "RMSE" else F.cross_entropy(out, y)


def score_of(out, y, metric):
    """The higher, the better: accuracy, area under the ROC curve, or minus the root of the mean squared error. Outputs that
    are not finite, and a curve of one class, are errors."""
    if not out.isfinite().all():
        raise ValueError("Expected finite outputs of the network (got NaN or infinity)")
    if metric == "ROC AUC" and y.unique().numel() < 2:
        raise ValueError("Expected examples of two classes to judge by ROC AUC (got one)")
    if metric == "RMSE":
        return -float(root_mean_squared_error(y.numpy(), out.squeeze(1).numpy()))
    if metric == "ROC AUC":
        return float(roc_auc_score(y.numpy(), (out[:, 1] - out[:, 0]).numpy()))
    return float((out.argmax(dim=1) == y).double().mean())


def forever(batches):
    """Epoch after epoch."""
    while True:
        yield from batches()


def train_for(seconds, model, batches, loss, judge, ahead=0.0, lr=3e-3, weight_decay=1e-2):
    """Trains for so many seconds of processor time, and ends with the weights that `judge` prefers.

    Args:
        seconds: How long, with what was prepared `ahead`.
        model: The network.
        batches: Called in each epoch, gives its batches.
        loss: Gives the loss of a batch.
        judge: Gives the score on validation data, higher is better. Its time does not count.
        ahead: The seconds that were spent before.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=weight_decay)
    stream, spent, steps, scores, best = forever(batches), ahead, 0, [], None
    for look in range(1, LOOKS + 1):
        start = time.process_time() - spent
        model.train()
        while (spent := time.process_time() - start) < seconds * look / LOOKS:
            optimizer.param_groups[0]["lr"] = lr * (1 + math.cos(math.pi * spent / seconds)) / 2
            optimizer.zero_grad()
            loss(next(stream)).backward()
            optimizer.step()
            steps += 1
        model.eval()
        with torch.no_grad():
            scores.append(round(judge(), 5))
        if best is None or scores[-1] > best[0]:
            best = scores[-1], {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best[1])
    return {"ahead": round(ahead, 2), "steps": steps, "validation": best[0], "curve": scores}


def candidates(count, grid=GRID, default=DEFAULT):
    """The settings of the trials: the default, then others that a generator with seed 0 draws from the grid."""
    drawn = ParameterSampler(grid, count, random_state=0)
    return [default, *(settings for settings in drawn if settings != default)][:count]


def best(settings, results):
    """The settings with the highest validation score; the first of equals. Failed trials are None."""
    pairs = [(result["validation"], -number) for number, result in enumerate(results) if result is not None]
    return settings[-max(pairs)[1]] if pairs else None
