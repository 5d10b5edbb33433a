"""A figure of three plots for a paper, two runs on the same axes."""

import matplotlib.pyplot as plt

import polypath
from polypath import plots

normal, backup = (polypath.run(f"backup/{name}", segments=True) for name in ("normal", "backup"))

with plots.style(plots.Look(font_size=8)):
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(7, 2.2), layout="constrained")
    for name, run in {"normal": normal, "backup": backup}.items():
        run.plot.cdf(left, label=name, legend=False)
        run.plot.rtt(middle, label=name, legend=False, events=False)
    left.legend()
    backup.plot.sequence(right, from_s=2.5, to_s=5, legend=False)
    figure.savefig("backup.pdf")
