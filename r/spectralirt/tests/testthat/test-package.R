test_that("data as R users have them give the same numbers", {
  needs_engine()
  set.seed(91)
  x <- draw_rasch(120, c(-1, 0, 0.5, 1))
  expected <- coef(rasch(x))
  frame <- as.data.frame(x)
  expect_equal(coef(rasch(frame)), expected)
  factors <- frame
  factors[] <- lapply(frame, factor)
  expect_equal(coef(rasch(factors)), expected)
  words <- frame
  words[] <- lapply(frame, function(column) factor(column, 0:1, c("no", "yes")))
  expect_equal(coef(rasch(words)), expected)
  texts <- frame
  texts[] <- lapply(frame, as.character)
  expect_equal(coef(rasch(texts)), expected)
  logical <- x == 1L
  expect_equal(coef(rasch(logical)), expected)
  named <- cbind(name = rownames(x), sex = rep(c("f", "m"), 60), frame)
  fit <- rasch(named, person = "name", people = "sex")
  expect_equal(coef(fit), expected)
  expect_equal(persons(fit)$person, rownames(x))
  expect_s3_class(dif(fit, "sex"), "data.frame")
  if (requireNamespace("haven", quietly = TRUE)) {
    labelled <- frame
    labelled$q1 <- haven::labelled_spss(ifelse(is.na(frame$q1), 9, frame$q1), c(no = 0, yes = 1, refused = 9), na_values = 9)
    expect_equal(coef(rasch(labelled)), expected)
  }
})

test_that("the S3 methods belong together", {
  needs_engine()
  set.seed(92)
  x <- draw_rasch(200, c(-1, -0.3, 0.4, 0.9))
  fit <- rasch(x)
  expect_named(coef(fit), colnames(x))
  expect_equal(sum(coef(fit)), 0, tolerance = 1e-8)
  expect_equal(unname(sqrt(diag(vcov(fit)))), unname(fit$se.beta), tolerance = 1e-8)
  expect_equal(dimnames(vcov(fit)), list(colnames(x), colnames(x)))
  ends <- confint(fit, level = 0.9)
  expect_equal(unname(ends[, 2L] - ends[, 1L]), unname(2 * qnorm(0.95) * fit$se.beta))
  expect_equal(BIC(fit), -2 * as.numeric(logLik(fit)) + 3 * log(attr(logLik(fit), "nobs")))
  expect_equal(nobs(fit), 200L)
  expect_output(print(fit), "Rasch model")
  expect_output(print(summary(fit)), "Conditional maximum likelihood")
  for (type in c("wright", "items", "fit", "icc")) expect_invisible(plot(fit, type))
  grDevices::dev.off()
  unlink("Rplots.pdf")
})

test_that("predict() measures new persons on the same scale", {
  needs_engine()
  set.seed(93)
  x <- draw_rasch(150, c(-1, -0.3, 0.4, 0.9))
  fit <- rasch(x)
  expect_equal(predict(fit, x[1:10, ])$ability, persons(fit)$ability[1:10], tolerance = 1e-8)
  chance <- predict(fit, type = "response", ability = c(0, 1))
  expect_equal(chance, stats::plogis(outer(c(0, 1), coef(fit), "-")), ignore_attr = TRUE)
  graded <- pcm(data.frame(a = rep(0:2, 40), b = rep(c(0, 1, 2, 2, 1, 0), 20), c = rep(c(0, 0, 1, 2), 30)))
  tau <- coef(graded)[c("a.1", "a.2")]
  weight <- exp(c(0, 0.7 - tau[1L], 1.4 - sum(tau)))
  expect_equal(predict(graded, type = "response", ability = 0.7)[, "a"], sum(0:2 * weight) / sum(weight), ignore_attr = TRUE)
})

test_that("ratings have raters with severities", {
  needs_engine()
  set.seed(94)
  ratings <- expand.grid(essay = paste0("e", 1:60), criterion = c("style", "content", "order"), rater = c("ann", "bob", "cem"))
  severity <- c(ann = -0.6, bob = 0, cem = 0.6)[as.character(ratings$rater)]
  ability <- stats::rnorm(60)[as.integer(ratings$essay)]
  ratings$score <- rowSums(sapply(c(-1, 0, 1), function(tau) stats::runif(540) < stats::plogis(ability - severity - tau)))
  fit <- facets(ratings, rater = "rater", person = "essay", item = "criterion", response = "score", model = "rsm")
  raters <- facet_table(fit)
  expect_equal(raters$rater[order(raters$severity)], c("ann", "bob", "cem"))
  expect_error(dif(fit, "essay"), "not offered")
})

test_that("bad input ends in a sentence", {
  expect_error(rasch(list(1, 2)), "give a data frame or a matrix")
  expect_error(rasch(data.frame(a = 0:1)), "it takes two items; there is 1")
  expect_error(rasch(data.frame(a = c("x", "1"), b = 0:1)), "item 'a' holds text")
  expect_error(rasch(data.frame(a = 0:1, b = 0:1), items = c("a", "z")), "no column 'z'; there are a, b")
  expect_error(rasch(data.frame(a = 0:1, b = 1:0), anchors = c(0.5)), "named numbers")
  expect_error(items(1), "give a fit of rasch")
  expect_error(read_responses("no such file.csv"), "no file")
  needs_engine()
  expect_error(rasch(data.frame(a = c(0, 1, 7), b = c(1, 0, 7), c = c(0, 1, 1))), "7")
  expect_error(item_fit(rasch(data.frame(a = 0:1, b = 1:0, c = 0:1)))$x, NA)
})

test_that("files are read as the program reads them", {
  needs_engine()
  folder <- tempfile()
  dir.create(folder)
  path <- file.path(folder, "answers.csv")
  writeLines(c("student;q1;q2;q3", "ann;1;0;1", "ben;0;9;1", "cid;0;1;0"), path)
  x <- read_responses(path, missing = "9")
  expect_equal(x["ben", "q2"], NA_real_, ignore_attr = TRUE)
  expect_equal(rownames(x), c("ann", "ben", "cid"))
  fit <- rasch(draw_rasch(80, c(-1, 0, 1)))
  spectral_report(fit, file.path(folder, "report.html"))
  expect_match(readLines(file.path(folder, "report.html"), n = 1L), "html", ignore.case = TRUE)
  expect_error(spectral_report(fit, "/no/such/folder/report.html"), "no folder")
})
