# The models. Each is a fit of class spectral_fit: tables as data frames, and what is needed to ask for more.

#' Rasch model, partial credit model, rating scale model
#'
#' @param data data frame or matrix: a row for each person, a column for each item; 0 and 1, or categories from 0 or 1 on.
#'   NA is a response that was not given. Factors, tibbles and labelled columns are understood.
#' @param person name of the column with labels of persons; by default the names of the rows.
#' @param items names of the columns that are items; by default all others.
#' @param people names of columns about persons, such as sex, for `dif()`.
#' @param anchors named numbers: difficulties that are fixed.
#' @param prior FALSE for estimates without any prior on items with few responses.
rasch <- function(data, person = NULL, items = NULL, people = NULL, anchors = NULL, prior = TRUE) {
  fit_wide("rasch", data, person, items, people, anchors, prior, match.call())
}

#' @rdname rasch
pcm <- function(data, person = NULL, items = NULL, people = NULL, anchors = NULL, prior = TRUE) {
  fit_wide("pcm", data, person, items, people, anchors, prior, match.call())
}

#' @rdname rasch
#' @param corrected FALSE for plain conditional maximum likelihood, as in eRm, without a correction of small-sample bias.
rsm <- function(data, person = NULL, items = NULL, people = NULL, corrected = TRUE) {
  model <- if (corrected) "rsm" else "rsm_cml"
  fit_wide(model, data, person, items, people, NULL, TRUE, match.call())
}

#' Many-facet Rasch model
#'
#' @param data a row for each rating (with `item` and `response`), or for each person and rater, with a column for each
#'   criterion.
#' @param rater names of one or several facets, such as "rater".
#' @param person,item,response names of columns.
#' @param model "pcm" or "rsm".
facets <- function(data, rater, person, item = NULL, response = NULL, model = c("pcm", "rsm")) {
  model <- match.arg(model)
  data <- as.data.frame(data, stringsAsFactors = FALSE)
  check_columns(data, c(rater, person, item, response))
  table <- data
  for (name in names(table)) {
    label <- name %in% c(rater, person, item)
    table[[name]] <- if (label) as.character(table[[name]]) else as_codes(table[[name]], name)
  }
  columns <- list(facets = I(rater), person = person, item = item, response = response)
  fit_job(list(do = "fit", model = model, columns = columns), table, match.call())
}

fit_wide <- function(model, data, person, items, people, anchors, prior, call) {
  wide <- wide_data(data, person, items, people)
  job <- list(do = "fit", model = model, columns = list(items = I(wide$items), people = I(as.character(people))))
  if (!is.null(anchors)) {
    if (is.null(names(anchors))) stop("anchors are named numbers, such as c(q1 = -0.5).", call. = FALSE)
    job$anchors <- as.list(anchors)
  } else if (!prior) {
    job$settings <- list(regularization = 0)
  }
  fit_job(job, wide$table, call)
}

fit_job <- function(job, table, call) {
  folder <- run_job(job, list("data.csv" = table))
  on.exit(unlink(folder, recursive = TRUE))
  files <- sub("\\.csv$", "", list.files(folder, pattern = "\\.csv$"))
  tables <- lapply(setNames(nm = setdiff(files, c("data", "vcov"))), function(name) read_table(folder, name))
  covariance <- read_table(folder, "vcov")
  if (!is.null(covariance)) {
    covariance <- as.matrix(covariance)
    rownames(covariance) <- colnames(covariance)
  }
  found <- read_summary(folder)
  fit <- list(model = job$model, call = call, tables = tables, vcov = covariance, summary = found, job = job, data = table)
  # The names that users of eRm look for: easiness, its standard error, the likelihood.
  thresholds <- threshold_estimates(fit)
  fit$betapar <- -thresholds$estimate
  names(fit$betapar) <- paste("beta", names(thresholds$estimate))
  fit$se.beta <- thresholds$se
  fit$loglik <- found$loglik$value
  fit$npar <- found$loglik$df
  structure(fit, class = "spectral_fit")
}

# Estimates and errors of the thresholds, item after item, with the names of vcov().
threshold_estimates <- function(fit) {
  table <- fit$tables$thresholds
  if (is.null(table)) {
    table <- fit$tables$items
    names <- table$item
    estimate <- table$difficulty
  } else {
    names <- paste(table$item, table$category, sep = ".")
    estimate <- table$threshold
  }
  list(estimate = setNames(estimate, names), se = setNames(table$se, names))
}
