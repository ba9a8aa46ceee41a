needs_engine <- function() testthat::skip_if(spectral_engine() == "none", "there is no Python with spectral_irt")

# Responses by the Rasch model, with missing ones.
draw_rasch <- function(n, difficulty, missing = 0) {
  chance <- stats::plogis(outer(stats::rnorm(n), difficulty, "-"))
  x <- matrix(as.integer(stats::runif(length(chance)) < chance), n)
  x[stats::runif(length(x)) < missing] <- NA
  colnames(x) <- paste0("q", seq_along(difficulty))
  rownames(x) <- paste0("p", seq_len(n))
  x
}
