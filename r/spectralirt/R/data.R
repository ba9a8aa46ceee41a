# What R users have, as the table that the engine reads: factors, labelled columns, tibbles, matrices, NA.

# Responses as numbers. A factor of numbers is these numbers, another one its place among its levels, from 0.
as_codes <- function(column, name) {
  missing_codes <- attr(column, "na_values")
  missing_range <- attr(column, "na_range")
  if (inherits(column, "haven_labelled")) {
    values <- as.vector(unclass(column))
    if (is.numeric(values)) {
      values[values %in% missing_codes] <- NA
      if (!is.null(missing_range)) values[values >= missing_range[1L] & values <= missing_range[2L]] <- NA
    }
    column <- values
  }
  if (is.factor(column)) {
    numbers <- suppressWarnings(as.numeric(levels(column)))
    return(if (anyNA(numbers)) as.integer(column) - 1L else numbers[as.integer(column)])
  }
  if (is.logical(column)) return(as.integer(column))
  if (is.character(column)) {
    text <- trimws(column)
    text[text %in% c("", "NA")] <- NA
    numbers <- suppressWarnings(as.numeric(text))
    if (any(is.na(numbers) & !is.na(text))) {
      stop("item ", sQuote(name, FALSE), " holds text, such as ", dQuote(text[is.na(numbers) & !is.na(text)][1L], FALSE),
           "; give numbers, or a factor whose levels are in order.", call. = FALSE)
    }
    return(numbers)
  }
  if (!is.numeric(column)) {
    stop("item ", sQuote(name, FALSE), " is of class ", class(column)[1L], "; give numbers or factors.", call. = FALSE)
  }
  as.vector(column)
}

# A row for each person: the labels of the persons, the items, and columns about the persons.
wide_data <- function(data, person, items, people) {
  if (!is.matrix(data) && !is.data.frame(data)) {
    stop("data is of class ", class(data)[1L], "; give a data frame or a matrix with a row for each person.", call. = FALSE)
  }
  labels <- rownames(data)
  if (is.matrix(data) && is.null(colnames(data))) colnames(data) <- paste0("I", seq_len(ncol(data)))
  data <- as.data.frame(data, stringsAsFactors = FALSE)
  check_columns(data, c(person, items, people))
  if (!is.null(person)) labels <- as.character(data[[person]])
  if (is.null(labels)) labels <- as.character(seq_len(nrow(data)))
  if (anyDuplicated(labels)) {
    stop("the person ", sQuote(labels[duplicated(labels)][1L], FALSE), " stands in two rows.", call. = FALSE)
  }
  if (is.null(items)) items <- setdiff(names(data), c(person, people))
  if (length(items) < 2L) stop("it takes two items; there is ", length(items), ".", call. = FALSE)
  table <- data.frame(.person = labels, check.names = FALSE)
  for (name in items) table[[name]] <- as_codes(data[[name]], name)
  for (name in people) table[[name]] <- as.character(data[[name]])
  list(table = table, items = items)
}

check_columns <- function(data, wanted) {
  unknown <- setdiff(wanted, names(data))
  if (length(unknown)) {
    there <- paste(utils::head(names(data), 8L), collapse = ", ")
    stop("there is no column ", sQuote(unknown[1L], FALSE), "; there are ", there, ".", call. = FALSE)
  }
}

#' A file of responses as a data frame
#'
#' @param file CSV, Excel, SPSS, Stata, Parquet, ...: whatever spectral_irt reads.
#' @param ... options of `spectral_irt.read`, such as `key = "key.csv"`, `missing = "9"`, `items = c("q1", "q2")`.
read_responses <- function(file, ...) {
  if (!file.exists(file)) stop("there is no file ", file, ".", call. = FALSE)
  options <- list(...)
  for (name in c("key", "item_texts")) {
    if (is.character(options[[name]])) options[[name]] <- normalizePath(options[[name]])
  }
  folder <- run_job(list(do = "read", path = normalizePath(file), options = options))
  on.exit(unlink(folder, recursive = TRUE))
  table <- read_table(folder, "table")
  rownames(table) <- table[[".person"]]
  table[[".person"]] <- NULL
  table
}
