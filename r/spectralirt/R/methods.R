# What R users call on every model.

NAMES <- c(rasch = "Rasch model", pcm = "Partial credit model", rsm = "Rating scale model", rsm_cml = "Rating scale model")

print.spectral_fit <- function(x, ...) {
  found <- x$summary
  cat(NAMES[[x$model]], if (length(found$facets)) paste("with", paste(found$facets, collapse = " and ")), "\n")
  cat(format(found$persons, big.mark = ","), "persons,", format(found$items, big.mark = ","), "items,",
      format(found$responses, big.mark = ","), "responses\n")
  difficulty <- x$tables$items$difficulty
  cat("Difficulties from", format(min(difficulty, na.rm = TRUE), digits = 3), "to",
      format(max(difficulty, na.rm = TRUE), digits = 3), "logits (larger = harder)\n")
  invisible(x)
}

summary.spectral_fit <- function(object, ...) structure(list(text = object$summary$text), class = "summary.spectral_fit")

print.summary.spectral_fit <- function(x, ...) {
  cat(x$text, sep = "\n")
  invisible(x)
}

# Larger = harder; eRm's betapar has the sign turned round.
coef.spectral_fit <- function(object, ...) threshold_estimates(object)$estimate

vcov.spectral_fit <- function(object, ...) {
  if (is.null(object$vcov)) stop("this fit kept no covariance matrix.", call. = FALSE)
  object$vcov
}

logLik.spectral_fit <- function(object, ...) {
  if (is.null(object$loglik)) stop("this fit has no conditional likelihood: some items have no estimate.", call. = FALSE)
  structure(object$loglik, df = object$npar, nobs = object$summary$loglik$nobs, class = "logLik")
}

nobs.spectral_fit <- function(object, ...) object$summary$persons

confint.spectral_fit <- function(object, parm, level = 0.95, ...) {
  found <- threshold_estimates(object)
  width <- qnorm((1 + level) / 2) * found$se
  ends <- cbind(found$estimate - width, found$estimate + width)
  sides <- c((1 - level) / 2, (1 + level) / 2)
  dimnames(ends) <- list(names(found$estimate), paste(format(100 * sides, trim = TRUE, digits = 3), "%"))
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

# Abilities of new persons ("ability"), or chances and expected responses of given abilities.
predict.spectral_fit <- function(object, newdata = NULL, type = c("ability", "response"), ability = NULL, ...) {
  type <- match.arg(type)
  if (type == "response") return(expected_responses(object, ability))
  if (is.null(newdata)) return(persons(object))
  if (length(object$job$columns$facets)) stop("new persons of ratings with facets are not offered here.", call. = FALSE)
  given <- intersect(object$job$columns$items, colnames(newdata))
  if (length(given) < 1L) {
    stop("newdata has none of the items ", paste(utils::head(object$job$columns$items, 5L), collapse = ", "), ".",
         call. = FALSE)
  }
  new <- data.frame(.person = if (is.null(rownames(newdata))) seq_len(nrow(newdata)) else rownames(newdata))
  for (name in given) new[[name]] <- as_codes(newdata[, name, drop = TRUE], name)
  job <- object$job
  job$do <- "predict"
  job$new_items <- I(given)
  folder <- run_job(job, list("data.csv" = object$data, "new.csv" = new))
  on.exit(unlink(folder, recursive = TRUE))
  read_table(folder, "persons")
}

# Expected response to every item at each ability: sum over categories k of k exp(k ability - tau_1 - ... - tau_k).
expected_responses <- function(object, ability) {
  if (is.null(ability)) ability <- persons(object)$ability
  thresholds <- coef(object)
  labels <- object$tables$items$item
  of_item <- if (is.null(object$tables$thresholds)) labels else object$tables$thresholds$item
  expected <- vapply(labels, function(item) {
    steps <- c(0, cumsum(thresholds[of_item == item]))
    category <- seq_along(steps) - 1
    logits <- outer(ability, category) - rep(steps, each = length(ability))
    weight <- exp(logits - apply(logits, 1L, max))
    drop(weight %*% category) / rowSums(weight)
  }, numeric(length(ability)))
  matrix(expected, nrow = length(ability), dimnames = list(NULL, labels))
}

plot.spectral_fit <- function(x, type = c("wright", "items", "fit", "icc"), item = NULL, ...) {
  type <- match.arg(type)
  switch(type, wright = plot_wright(x, ...), items = plot_items(x, ...), fit = plot_fit(x, ...), icc = plot_icc(x, item, ...))
  invisible(x)
}

# Persons and thresholds on one scale: bars of persons to the left, labels of thresholds at their heights to the right.
plot_wright <- function(x, main = "Wright map", ...) {
  ability <- persons(x)$ability
  at <- coef(x)
  ends <- range(ability, at, na.rm = TRUE)
  bars <- hist(ability, breaks = seq(floor(ends[1L]), ceiling(ends[2L]) + 0.25, by = 0.25), plot = FALSE)
  widest <- max(bars$counts)
  plot(NA, xlim = c(-widest, widest), ylim = ends, xlab = "persons | items", ylab = "logits", main = main, xaxt = "n", ...)
  axis(1, at = c(-widest, 0), labels = c(widest, 0))
  graphics::rect(-bars$counts, bars$breaks[-length(bars$breaks)], 0, bars$breaks[-1L], col = "grey80", border = "white")
  abline(v = 0)
  # Labels that would stand upon each other go beside each other.
  order <- order(at)
  close <- cumsum(c(TRUE, diff(at[order]) > diff(ends) / 40))
  place <- stats::ave(seq_along(order), close, FUN = seq_along)
  text(place * widest / (max(place) + 1), at[order], names(at)[order], cex = 0.7)
}

plot_items <- function(x, main = "Difficulties with 95% intervals", ...) {
  table <- items(x)
  table <- table[order(table$difficulty), ]
  row <- seq_len(nrow(table))
  ends <- table$difficulty + outer(table$se, c(-1.96, 1.96))
  plot(table$difficulty, row, xlim = range(ends, na.rm = TRUE), pch = 19, yaxt = "n", xlab = "logits", ylab = "", main = main, ...)
  segments(ends[, 1L], row, ends[, 2L], row)
  axis(2, at = row, labels = table$item, las = 1, cex.axis = 0.7)
}

plot_fit <- function(x, main = "Infit and difficulty", ...) {
  table <- merge(items(x)[c("item", "difficulty")], item_fit(x)[c("item", "infit")], by = "item")
  plot(table$infit, table$difficulty, xlab = "infit (1 expected)", ylab = "difficulty (logits)", main = main, pch = 19, ...)
  abline(v = c(0.7, 1, 1.3), lty = c(2, 1, 2))
  text(table$infit, table$difficulty, table$item, pos = 4, cex = 0.7)
}

plot_icc <- function(x, item = NULL, main = "Expected responses", ...) {
  ability <- seq(-4, 4, length.out = 121)
  curves <- expected_responses(x, ability)
  if (!is.null(item)) {
    if (!all(item %in% colnames(curves))) stop("there is no item ", item[!item %in% colnames(curves)][1L], ".", call. = FALSE)
    curves <- curves[, item, drop = FALSE]
  }
  matplot(ability, curves, type = "l", lty = 1, xlab = "ability (logits)", ylab = "expected response", main = main, ...)
  if (ncol(curves) <= 10L) legend("topleft", colnames(curves), col = seq_len(ncol(curves)), lty = 1, bty = "n", cex = 0.7)
}
