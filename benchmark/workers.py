"""Many runs at a time, each in a process with one thread: progress, errors that do not end the others, a clean stop."""

import multiprocessing
import signal

from tqdm import tqdm


def _try(arguments):
    """An error is a result too, since other runs shall go on."""
    make_run, source, job = arguments
    try:
        return job, make_run(source, job)
    except Exception as error:
        return job, f"{type(error).__name__}: {error}"


def finished(make_run, source, jobs, processes, total, describe):
    """Yields `(job, make_run(source, job))` of jobs as they finish. A kind of job that fails is reported once.

    Args:
        make_run: A function of a module, since it is called in other processes.
        source: Where the data comes from, for all jobs.
        jobs: The jobs that are missing.
        processes: How many of them at the same time.
        total: The number of all jobs, also of those that are there already: for the progress bar.
        describe: Gives the kind of a job in words.
    """
    if not jobs:
        return
    done, failures = total - len(jobs), {}
    # A command that is killed shall end as by Ctrl-C: its processes would go on otherwise, each to the end of its run.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    pool = multiprocessing.get_context("spawn").Pool(min(processes, len(jobs)))
    try:
        with tqdm(total=total, initial=done, unit="run", smoothing=0.1) as progress:
            for job, result in pool.imap_unordered(_try, [(make_run, source, job) for job in jobs]):
                kind = describe(job)
                if isinstance(result, str):
                    if kind not in failures:
                        progress.write(f"{kind} failed, and is left out where it does: {result}")
                    failures[kind] = failures.get(kind, 0) + 1
                else:
                    yield job, result
                    progress.set_postfix_str(kind)
                done += 1
                progress.update()
    except KeyboardInterrupt:
        raise SystemExit(f"Stopped with {done} of {total} runs; the same command goes on from there") from None
    finally:
        pool.terminate()
        signal.signal(signal.SIGTERM, before)
    for kind, count in failures.items():
        print(f"{kind} failed in {count} runs")
