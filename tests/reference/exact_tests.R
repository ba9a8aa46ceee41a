# Ponocny's nonparametric tests by eRm::NPtest on tests/reference/test15.csv: writes test15_nptest.json beside it.
#
#     Rscript tests/reference/exact_tests.R tests/reference
library(eRm)
place <- commandArgs(trailingOnly = TRUE)[1]
x <- as.matrix(read.csv(file.path(place, "test15.csv")))
control <- rsctrl(burn_in = 500, n_eff = 4000, step = 32, seed = 20)
drawn <- rsampler(x, control)
t1 <- NPtest(drawn, method = "T1")
t2 <- NPtest(drawn, method = "T2", idx = 1:5, stat = "var")
t10 <- NPtest(drawn, method = "T10", splitcr = "median")
t11 <- NPtest(drawn, method = "T11")
numbers <- function(values) paste0("[", paste(sprintf("%.6f", values), collapse = ", "), "]")
text <- c(
  "{",
  sprintf('"eRm": "%s", "R": "%s.%s", "n_eff": 4000,', packageVersion("eRm"), R.version$major, R.version$minor),
  sprintf('"T1": %s,', numbers(t1$prop)),
  sprintf('"T2": {"items": 5, "statistic": %.6f, "p": %.6f},', t2$T2vec[1], t2$prop),
  sprintf('"T10": {"split": "median", "statistic": %.6f, "p": %.6f},', t10$T10vec[1], t10$prop),
  sprintf('"T11": {"p": %.6f, "rho": %s}', t11$prop, numbers(t11$T11rho)),
  "}"
)
writeLines(text, file.path(place, "test15_nptest.json"))
