"""Training for a given time."""

import math
import time

import torch

LOOKS = 20  # at validation data


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
