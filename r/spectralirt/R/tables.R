# Tables as data frames: a row for each item, threshold, person or score.

#' Tables of a fit
#'
#' @param object a fit of `rasch()`, `pcm()`, `rsm()` or `facets()`.
items <- function(object) table_of(object, "items")

#' @rdname items
thresholds <- function(object) table_of(object, "thresholds")

#' @rdname items
persons <- function(object) table_of(object, "persons")

#' @rdname items
item_fit <- function(object) {
  if (length(object$job$columns$facets)) {
    return(items(object)) # of ratings, the table of items holds their fit
  }
  table_of(object, "item_fit")
}

#' @rdname items
score_table <- function(object) table_of(object, "scores")

#' @rdname items
#' @param facet the name of a facet, such as "rater".
facet_table <- function(object, facet = object$job$columns$facets[1L]) table_of(object, facet)

#' @rdname items
findings <- function(object) {
  check_fit(object)
  found <- object$summary$findings
  if (!length(found)) return(data.frame(code = character(), severity = character(), sentence = character()))
  found[c("code", "severity", "sentence", "remedy")]
}

table_of <- function(object, name) {
  check_fit(object)
  found <- object$tables[[name]]
  if (is.null(found)) {
    stop("this fit has no table ", sQuote(name, FALSE), "; it has ", paste(names(object$tables), collapse = ", "), ".",
         call. = FALSE)
  }
  found
}

check_fit <- function(object) {
  if (!inherits(object, "spectral_fit")) {
    stop("this is of class ", class(object)[1L], "; give a fit of rasch(), pcm(), rsm() or facets().", call. = FALSE)
  }
}

#' Differential item functioning
#'
#' @param object a fit whose data have columns about persons (`people = `), or any fit with `group` as labels.
#' @param group the name of such a column, or a label for each person in the order of the data.
#' @return a data frame: a row for each item in each group but the reference; attribute "test": all items together.
dif <- function(object, group) {
  check_fit(object)
  if (length(object$job$columns$facets)) stop("DIF of ratings with facets is not offered here.", call. = FALSE)
  job <- object$job
  data <- object$data
  if (length(group) == 1L && is.character(group)) {
    check_columns(data, group)
    job$group <- group
  } else {
    if (length(group) != nrow(data)) {
      stop("there are ", length(group), " labels of groups for ", nrow(data), " persons.", call. = FALSE)
    }
    data[[".group"]] <- as.character(group)
    job$columns$people <- I(c(job$columns$people, ".group"))
    job$group <- ".group"
  }
  job$do <- "dif"
  folder <- run_job(job, list("data.csv" = data))
  on.exit(unlink(folder, recursive = TRUE))
  structure(read_table(folder, "dif"), test = read_summary(folder)[c("statistic", "df", "p")])
}

#' The report of an analysis
#'
#' @param object a fit.
#' @param file where to write it: an HTML file that needs nothing else.
#' @param title,author shown on the report.
#' @return the path, invisibly.
spectral_report <- function(object, file, title = NULL, author = NULL) {
  check_fit(object)
  if (!dir.exists(dirname(file))) stop("there is no folder ", dirname(file), ".", call. = FALSE)
  path <- file.path(normalizePath(dirname(file)), basename(file))
  job <- c(object$job, list(path = path, title = title, author = author))
  job$do <- "report"
  unlink(run_job(job, list("data.csv" = object$data)), recursive = TRUE)
  invisible(path)
}
