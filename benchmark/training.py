"""Training for the benchmarks of accuracy: recipes, one loop, and the protocols that say which epoch counts."""

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F

LAST = 10  # epochs whose mean accuracy is kept beside the best one, since the best of many is noisy
EVALUATION_BATCH = 256


class Recipe(NamedTuple):
    """How to optimise, whatever the network."""

    optimizer: Callable
    cosine: bool  # whether the learning rate falls to zero along a cosine
    batch_size: int
    epochs: int


RECIPES = {
    "default": Recipe(functools.partial(torch.optim.AdamW, lr=1e-3, fused=True), True, batch_size=32, epochs=100),
    "paper": Recipe(functools.partial(torch.optim.SGD, lr=0.1, momentum=0.95, fused=True), False, batch_size=100, epochs=300),
}


def train(model, graphs, training, recipe, epochs, seed):
    """Trains for some epochs and yields the mean loss after each, with the model ready to be evaluated.

    The loss is the cross entropy plus `auxiliary_loss` of all modules that have one. Models that are trained with the same
    seed see the same batches, whatever random numbers they draw themselves.
    """
    optimizer = recipe.optimizer(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs) if recipe.cosine else None
    with_loss = [module for module in model.modules() if hasattr(module, "auxiliary_loss")]
    shuffle = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        model.train()
        total = 0.0
        for part in training[torch.randperm(training.numel(), generator=shuffle)].split(recipe.batch_size):
            data = graphs.batch(part)
            optimizer.zero_grad()
            loss = F.cross_entropy(predict(model, data), data.y)
            (loss + sum(module.auxiliary_loss for module in with_loss)).backward()
            optimizer.step()
            total += loss.item() * part.numel()
        if scheduler:
            scheduler.step()
        model.eval()
        yield total / training.numel()


def train_fair(model, graphs, split, recipe, epochs, seed):
    """Trains a model and tests it once, with the weights of the epoch that validation graphs choose: the one with the highest
    validation accuracy, and among equals the one with the lowest cross entropy.

    Args:
        model: Called as `model(x, edge_index, batch=..., batch_size=...)`, and with `fields=...` if the graphs have them;
            gives one row of logits per graph.
        graphs: The `Graphs`, scaled by the training part of the split.
        split: The `Split`.
        recipe: The `Recipe`.
        epochs: The number of epochs.
        seed: The seed of the order of the training graphs.
    """
    validation = graphs.batches(split.validation, EVALUATION_BATCH)
    start, curves, best = time.perf_counter(), {"loss": [], "validation": []}, None
    for epoch, training_loss in enumerate(train(model, graphs, split.training, recipe, epochs, seed), start=1):
        accuracy, loss = evaluate(model, validation)
        curves["loss"].append(training_loss)
        curves["validation"].append(accuracy)
        if best is None or (accuracy, -loss) > (best["validation"], -best["loss"]):
            state = {name: value.clone() for name, value in model.state_dict().items()}
            best = {"validation": accuracy, "loss": loss, "epoch": epoch, "state": state}
    seconds = time.perf_counter() - start
    model.load_state_dict(best["state"])
    last = curves["validation"][-LAST:]
    return {
        "validation": best["validation"],
        "validation_last": sum(last) / len(last),
        "test": evaluate(model, graphs.batches(split.test, EVALUATION_BATCH))[0],
        "epoch": best["epoch"],
        "seconds": round(seconds, 2),
    }, curves


def train_tested(model, graphs, split, recipe, epochs, seed):
    """Trains a model and tests it after every epoch: the arguments are those of `train_fair`. The test graphs choose which
    epoch counts, so its figures are too high: only good for comparison with others of the same protocol."""
    test = graphs.batches(split.test, EVALUATION_BATCH)
    start, curves = time.perf_counter(), {"loss": [], "test": []}
    for loss in train(model, graphs, split.training, recipe, epochs, seed):
        curves["loss"].append(loss)
        curves["test"].append(evaluate(model, test)[0])
    return {"seconds": round(time.perf_counter() - start, 2)}, curves


@torch.no_grad()
def evaluate(model, batches):
    """The accuracy and the mean cross entropy."""
    out, y = torch.cat([predict(model, data) for data in batches]), torch.cat([data.y for data in batches])
    return float((out.argmax(dim=1) == y).double().mean()), float(F.cross_entropy(out, y))


def predict(model, data):
    fields = {} if data.fields is None else {"fields": data.fields}
    return model(data.x, data.edge_index, batch=data.batch, batch_size=data.y.numel(), **fields)
