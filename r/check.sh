#!/bin/sh
# make test-r: R CMD build and check of the R package, with the tests beside eRm, psychotools and psychotree. The engine is
# the Python of the folder of programs that is given. Where R is not, it says so and ends well.
programs=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v R >/dev/null; then
  echo "R is not here (on Debian: r-base-core r-cran-testthat r-cran-jsonlite r-cran-erm r-cran-psychotools): not tested."
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SPECTRAL_IRT_PYTHON="$programs/python"
# Without pandoc or rmarkdown the vignette is checked as text only. Suggested packages that are missing are skipped.
export _R_CHECK_FORCE_SUGGESTS_=false _R_CHECK_SYSTEM_CLOCK_=0
vignettes=""
if ! command -v pandoc >/dev/null || ! Rscript -e 'library(rmarkdown)' >/dev/null 2>&1; then
  vignettes="--no-build-vignettes"
fi
cd "$folder" || exit 1
R CMD build $vignettes "$here/spectralirt" || exit 1
check=""
test -n "$vignettes" && check="--ignore-vignettes"
R CMD check --no-manual $check spectralirt_*.tar.gz
code=$?
cat spectralirt.Rcheck/tests/testthat.Rout* 2>/dev/null | tail -n 12
if [ $code -ne 0 ] || grep -qE "^Status:.*(ERROR|WARNING)" spectralirt.Rcheck/00check.log; then
  exit 1
fi
