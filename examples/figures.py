"""A figure of three plots for a paper, two runs on the same axes."""

import matplotlib.pyplot as plt

import polypath
from polypath import plots
from polypath.labs import get

lab = get("backup")
runs = {run.name: polypath.run(run.of(lab.scenario()), segments=True) for run in lab.runs}

with plots.style(plots.Look(font_size=8)):
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(7, 2.2), layout="constrained")
    for name in ("normal", "backup"):
        plots.cdf(runs[name], left, label=name, legend=False)
        plots.rtt(runs[name], middle, label=name, legend=False, events=False)
    left.legend()
    plots.sequence(runs["backup"], right, from_s=2.5, to_s=5, legend=False)
    figure.savefig("backup.pdf")
