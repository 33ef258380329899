"""Training by Lightning: a module around GIC, PyG's data module, and what the Trainer brings along.

The Trainer moves batches, keeps the best epoch and stops early. Nothing in the layers knows of it. Needs lightning.
"""

import argparse

import torch
import torch.nn.functional as F

try:
    import lightning
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
except ImportError:
    raise SystemExit("This example needs lightning: pip install lightning") from None
from torch_geometric.data.lightning import LightningDataset

from torch_gic import GIC, ReceptiveFields
from torch_gic.datasets import Letters


class Classifier(lightning.LightningModule):
    """GIC, its loss and its optimiser."""

    def __init__(self, in_channels, out_channels, architecture, lr):
        super().__init__()
        self.save_hyperparameters()  # so that a checkpoint alone is enough to load the model
        self.model = GIC(in_channels, out_channels, architecture)

    def forward(self, batch):
        return self.model(batch.x, batch.edge_index, batch=batch.batch, batch_size=batch.num_graphs, fields=batch.fields)

    def training_step(self, batch, batch_index):
        loss = F.cross_entropy(self(batch), batch.y)
        self.log("loss", loss, batch_size=batch.num_graphs)
        return loss

    def validation_step(self, batch, batch_index):
        self._log_accuracy(batch, "val_accuracy")

    def test_step(self, batch, batch_index):
        self._log_accuracy(batch, "test_accuracy")

    def _log_accuracy(self, batch, name):
        accuracy = (self(batch).argmax(dim=1) == batch.y).float().mean()
        self.log(name, accuracy, batch_size=batch.num_graphs, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="at most (default: %(default)s)")
    parser.add_argument("--graphs", type=int, default=600, help="(default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="(default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.005, help="(default: %(default)s)")
    parser.add_argument("--architecture", default="C(16)-P(0.5)-C(16)-P-FC(32)", help="(default: %(default)s)")
    parser.add_argument("--output", default="lightning-run", help="folder of the checkpoints (default: %(default)s)")
    args = parser.parse_args()
    lightning.seed_everything(0)
    dataset = Letters(args.graphs, pre_transform=ReceptiveFields())  # fields once, not in every epoch
    order = torch.randperm(len(dataset))
    train, val, test = (dataset[part] for part in order.tensor_split([int(0.8 * len(order)), int(0.9 * len(order))]))
    data = LightningDataset(train, val, test, batch_size=args.batch_size)
    best = ModelCheckpoint(dirpath=args.output, monitor="val_accuracy", mode="max")
    stop = EarlyStopping(monitor="val_accuracy", mode="max", patience=10)
    trainer = lightning.Trainer(
        max_epochs=args.epochs, callbacks=[best, stop], default_root_dir=args.output, logger=False, log_every_n_steps=1
    )
    trainer.fit(Classifier(dataset.num_features, dataset.num_classes, args.architecture, args.lr), data)
    model = Classifier.load_from_checkpoint(best.best_model_path)
    (result,) = trainer.test(model, data, verbose=False)
    print(f"test accuracy {100 * result['test_accuracy']:.1f} %, of the best epoch: {best.best_model_path}")


if __name__ == "__main__":
    main()
