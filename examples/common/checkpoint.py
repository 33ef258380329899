"""A file from which training goes on where it was stopped."""

import torch


class Checkpoint:
    """Keeps the states of modules, optimisers and schedulers, and the random numbers, beside a few values.

    Args:
        path (pathlib.Path): The file.
        settings (dict): What the training depends on. A file of other settings is an error, never a silent mixture.
        parts: Objects with `state_dict` and `load_state_dict`, by name.
    """

    def __init__(self, path, settings, **parts):
        self.path, self.settings, self.parts = path, settings, parts

    def save(self, **values):
        states = {name: part.state_dict() for name, part in self.parts.items()}
        content = {"settings": self.settings, "states": states, "values": values, "random": torch.get_rng_state()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")  # who is killed while writing shall not lose the last epoch too
        torch.save(content, part)
        part.replace(self.path)

    def load(self):
        """Brings everything back; gives the values, or None where there is no file."""
        if not self.path.exists():
            return None
        content = torch.load(self.path, map_location="cpu", weights_only=True)
        if content["settings"] != self.settings:
            raise SystemExit(
                f"{self.path} was made with {content['settings']}, not with {self.settings}.\n"
                "Delete it, or choose another --checkpoint."
            )
        for name, part in self.parts.items():
            part.load_state_dict(content["states"][name])
        torch.set_rng_state(content["random"])
        return content["values"]
