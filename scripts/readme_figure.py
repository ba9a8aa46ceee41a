"""Draw the picture at the top of README.md, docs/figures/quiz.svg, from the bundled quiz."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

import spectral_irt as si

TARGET = Path(__file__).parents[1] / "docs" / "figures" / "quiz.svg"


def main() -> None:
    responses = si.datasets.load_quiz()
    study = si.SpectralRasch().fit(responses).analyse(responses)
    figure = Figure(figsize=(11, 7), layout="constrained")
    canvas = FigureCanvasSVG(figure)
    wright, options = figure.subplots(1, 2, width_ratios=[1.25, 1])
    study.plot.wright().plot(wright)
    study.plot.distractors("density").plot(options)
    canvas.print_svg(str(TARGET), metadata={"Date": None})


if __name__ == "__main__":
    main()
