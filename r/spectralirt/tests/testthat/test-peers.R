# The same data in one run: ours beside eRm, psychotools and psychotree.

test_that("rasch() has eRm's estimates, errors and likelihood", {
  needs_engine()
  skip_if_not_installed("eRm")
  theirs <- eRm::RM(eRm::raschdat1)
  fit <- rasch(eRm::raschdat1)
  expect_equal(unname(fit$betapar), unname(theirs$betapar), tolerance = 1e-4)
  expect_equal(as.numeric(logLik(fit)), theirs$loglik, tolerance = 1e-8)
  expect_equal(attr(logLik(fit), "df"), theirs$npar)
  # Theirs are the model's errors, ours hold when the model does not quite: alike in data that follow it.
  expect_lt(max(abs(log(fit$se.beta / theirs$se.beta))), 0.25)
})

test_that("pcm() and rsm() have eRm's estimates up to the origin, and its likelihood", {
  needs_engine()
  skip_if_not_installed("eRm")
  theirs <- eRm::PCM(eRm::pcmdat2)
  fit <- pcm(eRm::pcmdat2, prior = FALSE)
  table <- eRm::thresholds(theirs)$threshtable[[1L]][, -1L]
  # Ours have mean location zero; eRm fixes another origin.
  shift <- mean(table) - mean(coef(fit))
  expect_equal(unname(coef(fit)) + shift, as.vector(t(table)), tolerance = 1e-3)
  expect_equal(as.numeric(logLik(fit)), theirs$loglik, tolerance = 1e-6)
  expect_equal(attr(logLik(fit), "df"), theirs$npar)
  theirs <- eRm::RSM(eRm::rsmdat)
  plain <- rsm(eRm::rsmdat, corrected = FALSE)
  expect_equal(as.numeric(logLik(plain)), theirs$loglik, tolerance = 1e-6)
  expect_equal(AIC(plain), -2 * theirs$loglik + 2 * theirs$npar, tolerance = 1e-6)
})

test_that("missing responses: eRm again", {
  needs_engine()
  skip_if_not_installed("eRm")
  set.seed(81)
  x <- draw_rasch(250, seq(-1, 1, length.out = 6), missing = 0.15)
  x <- x[rowSums(!is.na(x)) > 1L, ]
  fit <- rasch(x, prior = FALSE)
  theirs <- suppressWarnings(eRm::RM(x))
  expect_equal(unname(fit$betapar), unname(theirs$betapar), tolerance = 1e-3)
})

test_that("psychotools has the same difficulties", {
  needs_engine()
  skip_if_not_installed("psychotools")
  set.seed(82)
  x <- draw_rasch(300, seq(-1.5, 1.5, length.out = 8))
  theirs <- psychotools::itempar(psychotools::raschmodel(x), ref = 1:8)
  expect_equal(unname(coef(rasch(x))), as.numeric(theirs), tolerance = 1e-4)
})

test_that("a leaf of psychotree is a fit of its persons", {
  needs_engine()
  skip_if_not_installed("psychotree")
  suppressPackageStartupMessages(library("psychotree")) # its trees look for mob() where packages are attached
  set.seed(83)
  group <- rep(c("a", "b"), each = 300)
  x <- rbind(draw_rasch(300, c(-1, -0.5, 0, 0.5, 1)), draw_rasch(300, c(-1, 1, 0, 0.5, -0.5)))
  rownames(x) <- paste0("p", seq_len(600))
  data <- data.frame(group = factor(group))
  data$x <- x
  tree <- psychotree::raschtree(x ~ group, data = data)
  leaves <- psychotools::itempar(tree)
  expect_equal(nrow(leaves), 2L)
  fit <- rasch(x[group == "a", ])
  expect_equal(unname(coef(fit)), unname(leaves[1L, ] - mean(leaves[1L, ])), tolerance = 1e-3)
  compared <- dif(rasch(x), group)
  expect_setequal(compared$item[compared$flagged], c("q2", "q5"))
})
