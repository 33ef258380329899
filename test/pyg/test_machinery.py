"""What PyTorch hangs onto parameters and modules acts here too: no module's forward is bypassed."""

import os

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.utils import parametrizations, parametrize, prune

from torch_gic import GIC, GICConv, GICNet

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])


def layer():
    torch.manual_seed(0)
    return GICConv(5, 6, num_components=3, num_scales=2, hidden_channels=4)


def parameters():
    """Every parameter, as the path of its module and its name."""
    return [name.rpartition(".")[::2] for name, _ in layer().named_parameters()]


def linears():
    return [path for path, _ in layer().named_modules() if path.endswith(("lin", "root", "mean"))]


def step(conv, times=2):
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.SGD(conv.parameters(), lr=0.1)
    for _ in range(times):
        optimizer.zero_grad()
        out = conv(x, EDGES)
        out.square().sum().backward()
        optimizer.step()
    return conv(x, EDGES)


class Cube(torch.nn.Module):
    def forward(self, weight):
        return weight**3  # not a factor, which a normalisation would undo


@pytest.mark.parametrize(("path", "name"), parameters())
def test_parametrizations(path, name):
    conv = layer()
    module = conv.get_submodule(path)
    x = torch.randn(4, 5)
    with torch.no_grad():
        getattr(module, name).add_(0.1 * torch.randn_like(getattr(module, name)))  # not zero
    before = conv(x, EDGES)
    parametrize.register_parametrization(module, name, Cube())
    assert not torch.equal(conv(x, EDGES), before)
    start = module.parametrizations[name].original.detach().clone()
    step(conv)
    assert not torch.equal(module.parametrizations[name].original, start)


@pytest.mark.parametrize(("path", "name"), parameters())
def test_pruning(path, name):
    conv = layer()
    module = conv.get_submodule(path)
    prune.random_unstructured(module, name, amount=0.5)
    step(conv)
    mask, original = getattr(module, f"{name}_mask"), getattr(module, f"{name}_orig")
    assert torch.equal(getattr(module, name) == 0, (mask == 0) | (original == 0))
    prune.remove(module, name)
    step(conv)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated")
@pytest.mark.parametrize("path", linears())
@pytest.mark.parametrize(
    "wrap",
    [
        parametrizations.spectral_norm,
        parametrizations.weight_norm,
        parametrizations.orthogonal,
        torch.nn.utils.spectral_norm,  # the old ones work by hooks before forward
        torch.nn.utils.weight_norm,
    ],
)
def test_norms_of_weights_train(path, wrap):
    conv = layer()
    module = conv.get_submodule(path)
    wrap(module)
    before = {name: value.detach().clone() for name, value in module.named_parameters()}
    step(conv, times=3)
    changed = [name for name, value in module.named_parameters() if not torch.equal(value, before[name])]
    assert any("weight" in name for name in changed)
    if "spectral" in wrap.__name__:
        for _ in range(50):
            conv(torch.randn(4, 5), EDGES)
        assert torch.linalg.matrix_norm(module.weight, 2).item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("path", [path for path, _ in layer().named_modules()])
def test_forward_of_every_module_is_called(path):
    conv, calls = layer(), []
    conv.get_submodule(path).register_forward_hook(lambda *_: calls.append(path))
    step(conv, times=1)
    assert calls


@pytest.fixture
def process_group(tmp_path):
    os.environ.update(MASTER_ADDR="localhost", GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("inner", sorted({path for path, _ in parameters()}))
def test_fully_sharded(inner, process_group):
    from torch.distributed.fsdp import fully_shard

    expected, conv = step(layer()), layer()
    mesh = dist.init_device_mesh("cpu", (1,))
    if inner:
        fully_shard(conv.get_submodule(inner), mesh=mesh)
    fully_shard(conv, mesh=mesh)
    torch.testing.assert_close(step(conv), expected)


def sharded(conv):
    return FullyShardedDataParallel(conv, device_id=torch.device("cpu"), use_orig_params=True)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "make", [lambda: GIC(5, 2, "C(4)-P(0.5)-C(4)-P"), lambda: GICNet(5, 4, 3, 2), lambda: GIC(5, 2, "C(4)-C(4)")]
)
@pytest.mark.parametrize("wrap", [CheckpointWrapper, lambda conv: torch.compile(conv, backend="eager"), sharded])
def test_layers_wrapped(make, wrap, process_group):
    """For checkpoints, compiled, or sharded in the way that came before `fully_shard`."""
    torch.manual_seed(0)
    model = make()
    torch.manual_seed(0)
    wrapped = make()
    layers = wrapped.convs if isinstance(wrapped, GICNet) else wrapped.layers
    for place, conv in enumerate(layers):
        if isinstance(conv, GICConv):
            layers[place] = wrap(conv)
    generator = torch.Generator().manual_seed(1)  # nodes that can be told apart, unlike those of a ring
    x, edges = torch.randn(12, 5, generator=generator), torch.randint(12, (2, 40), generator=generator)
    grads = []
    for network in (model, wrapped):
        network(x, edges).square().sum().backward()
        grads.append([parameter.grad for parameter in network.parameters()])
    for a, b in zip(*grads, strict=True):
        assert (a is None) == (b is None)
        if a is not None:  # a checkpoint takes the statistics of its batch twice, which rounds otherwise
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_hooks_of_a_normalisation_run_for_a_single_graph(name):
    """They make the weight anew before each step."""
    torch.manual_seed(0)
    model = GIC(5, 2, "C(4)-P(0.5)-C(4)-P")
    for module in (model.readouts[0].norm, model.norms[0]):
        prune.random_unstructured(module, name, amount=0.5)
    step(model)
    for module in (model.readouts[0].norm, model.norms[0]):
        assert torch.equal(
            getattr(module, name) == 0, (getattr(module, f"{name}_mask") == 0) | (getattr(module, f"{name}_orig") == 0)
        )
