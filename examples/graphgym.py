"""Training by GraphGym: `python examples/graphgym.py --cfg examples/graphgym.yml optim.max_epoch 5`.

The import of torch_gic.contrib.graphgym registers the layer `gicconv` and the network `gic`. Needs yacs and pytorch-lightning.
"""

import argparse

from torch_geometric import seed_everything
from torch_geometric.graphgym.config import cfg, dump_cfg, load_cfg, set_out_dir, set_run_dir
from torch_geometric.graphgym.logger import set_printing
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.train import GraphGymDataModule, train
from torch_geometric.graphgym.utils import auto_select_device, params_count

import torch_gic.contrib.graphgym  # noqa: F401


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cfg", dest="cfg_file", required=True, help="the configuration")
    parser.add_argument("opts", nargs=argparse.REMAINDER, help="settings in place of those in the file")
    args = parser.parse_args()
    load_cfg(cfg, args)
    set_out_dir(cfg.out_dir, args.cfg_file)
    dump_cfg(cfg)
    set_run_dir(cfg.out_dir)
    set_printing()
    seed_everything(cfg.seed)
    auto_select_device()
    data = GraphGymDataModule()  # first: it tells the model how many features there are
    model = create_model()
    cfg.params = params_count(model)
    train(model, data, trainer_config={"enable_progress_bar": False})


if __name__ == "__main__":
    main()
