"""How much the components of a GIC network differ in what they take: the entropy of Q in every layer."""

import copy

import torch

from torch_gic.nn.conv.gic_conv import GICConv

from .training import predict


@torch.no_grad()
def layer_entropies(model, data):
    """The entropy of Q over log C on a batch, from 0 (each field member belongs to one component) to 1 (components do the
    same): one number per layer, the mean over its scales. Without a choice, with one component, there is none.

    Features are normalised by the batch, as in training: the running statistics of an untrained network are none.
    """
    model, entropies = copy.deepcopy(model).train(), []

    def measure(layer, arguments, options):
        if layer.num_components > 1:
            entropies.append(round(float(layer.entropy(arguments[0], options["fields"]).mean()), 4))

    layers = [module for module in model.modules() if isinstance(module, GICConv)]
    for layer in layers:
        layer.register_forward_pre_hook(measure, with_kwargs=True)
    predict(model, data)
    return entropies
