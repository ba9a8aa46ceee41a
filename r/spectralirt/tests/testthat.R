library(testthat)
library(spectralirt)

test_check("spectralirt")
