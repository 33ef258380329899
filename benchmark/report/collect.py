"""What the files of runs hold, by data set and network."""

from collections import defaultdict

from ..common.records import read_lines
from ..common.tuning import best


def files(folder, kind):
    """The lines of each data set, by its name."""
    return {path.stem: read_lines(path) for path in sorted((folder / kind).glob("*.jsonl"))}


def graph_results(folder):
    """Of each data set and network: {fold: result} of the settings that its trials chose, and these settings. With features
    other than all or without encoder, the name of the data set says so. Of several numbers of epochs the largest counts."""
    collected = {}
    for dataset, lines in files(folder, "graphs").items():
        groups = defaultdict(lambda: defaultdict(list))
        for line in lines:
            job = line["job"]
            special = [job["features"]] * (job["features"] != "all") + ["no encoder"] * (not job["encoder"])
            title = f"{dataset} ({', '.join(special)})" if special else dataset
            groups[title][job["network"]].append((job, line["result"]))
        for title, networks in groups.items():
            longest = max(job["epochs"] for runs in networks.values() for job, _ in runs)
            for network, runs in networks.items():
                found = _chosen([(job, result) for job, result in runs if job["epochs"] == longest])
                if found:
                    collected.setdefault(title, {})[network] = found
    return collected


def _chosen(runs):
    """The folds of the settings that the trials prefer; without trials, of those that were tested most."""

    def settings(job):
        return {name: job[name] for name in ("lr", "width", "layers", "dropout")}

    trials = [(settings(job), result) for job, result in runs if job["stage"] == "trial"]
    tested = [(settings(job), job, result) for job, result in runs if job["stage"] == "test"]
    if not tested:
        return None
    if trials:
        wanted = best([own for own, _ in trials], [result for _, result in trials])
    else:
        wanted = max((own for own, _, _ in tested), key=[own for own, _, _ in tested].count)
    folds = {job["fold"]: result for own, job, result in tested if own == wanted}
    return (folds, wanted, len(trials) or 1, tested[0][1]["epochs"]) if folds else None


def node_results(folder):
    """Of each data set and network: {run: result} of the trial that validation chose, the number of trials, and the epochs."""
    collected = {}
    for dataset, lines in files(folder, "nodes").items():
        runs, trials, epochs = defaultdict(dict), defaultdict(set), 0
        for line in lines:
            job, result = line["job"], line["result"]
            epochs = max(epochs, job["epochs"])
            trials[job["network"]].add(tuple(job[name] for name in ("lr", "width", "layers", "dropout")))
            own = runs[job["network"]]
            if job["run"] not in own or result["validation"] > own[job["run"]]["validation"]:
                own[job["run"]] = result
        collected[dataset] = {network: (found, len(trials[network]), epochs) for network, found in runs.items()}
    return collected


def printed_runs(folder):
    """Of each data set, features and stage: {network: {fold: result}} and the epochs, the largest number of them."""
    collected = defaultdict(lambda: defaultdict(dict))
    epochs = {}
    for dataset, lines in files(folder, "paper").items():
        for line in sorted(lines, key=lambda line: line["job"]["epochs"]):
            job = line["job"]
            own = dataset, job["features"], job["stage"]
            if job["epochs"] > epochs.get(own, 0):
                collected.pop(own, None)
                epochs[own] = job["epochs"]
            collected[own][job["network"]][job["fold"]] = line["result"]
    return collected, epochs
