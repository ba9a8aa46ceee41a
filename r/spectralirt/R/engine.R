# The way to Python: a job is a folder with job.json and data.csv, which inst/python/engine.py turns into tables.
# Only the name of the folder crosses between the languages.

#' Where the estimates are computed
#'
#' "reticulate" where that package finds a Python with spectral_irt, else "command": a Python that is started for each
#' fit. It is the one in `SPECTRAL_IRT_PYTHON`, or the one that the command `spectral-irt` belongs to.
spectral_engine <- function() {
  wanted <- Sys.getenv("SPECTRAL_IRT_ENGINE", "auto")
  if (wanted %in% c("auto", "reticulate") && reticulate_works()) return("reticulate")
  if (wanted == "reticulate") stop("reticulate finds no Python with spectral_irt; see ?spectral_engine.", call. = FALSE)
  if (nzchar(python_path())) return("command")
  "none"
}

engine_script <- function() system.file("python", "engine.py", package = "spectralirt", mustWork = TRUE)

reticulate_works <- function() {
  # A Python that was named is meant; reticulate would look for one of its own.
  if (nzchar(Sys.getenv("SPECTRAL_IRT_PYTHON")) && Sys.getenv("SPECTRAL_IRT_ENGINE") != "reticulate") return(FALSE)
  if (!requireNamespace("reticulate", quietly = TRUE)) return(FALSE)
  isTRUE(tryCatch(reticulate::py_module_available("spectral_irt"), error = function(e) FALSE))
}

python_path <- function() {
  named <- Sys.getenv("SPECTRAL_IRT_PYTHON")
  if (nzchar(named)) return(named)
  command <- Sys.which("spectral-irt")
  if (!nzchar(command)) return("")
  # The first line of the command says which Python it belongs to; on Windows that stands beside it.
  first <- tryCatch(suppressWarnings(readLines(command, n = 1L, warn = FALSE)), error = function(e) "")
  if (isTRUE(grepl("^#!", first))) return(trimws(sub("^#!", "", first)))
  beside <- file.path(dirname(command), c("python.exe", "python"))
  c(beside[file.exists(beside)], "")[1L]
}

# A job in a folder of its own, which the caller removes: its results are read from there.
run_job <- function(job, tables = list()) {
  folder <- tempfile("spectralirt-")
  dir.create(folder)
  done <- FALSE
  on.exit(if (!done) unlink(folder, recursive = TRUE))
  for (name in names(tables)) {
    write.csv(tables[[name]], file.path(folder, name), row.names = FALSE, na = "", fileEncoding = "UTF-8")
  }
  job_text <- jsonlite::toJSON(job, auto_unbox = TRUE, digits = NA, null = "null")
  writeLines(enc2utf8(job_text), file.path(folder, "job.json"), useBytes = TRUE)
  engine <- spectral_engine()
  if (engine == "none") {
    stop("there is no Python with spectral_irt: install it (pip install spectral-irt, or pip install . in a checkout), ",
         "and say where by Sys.setenv(SPECTRAL_IRT_PYTHON = \".../bin/python\").", call. = FALSE)
  }
  if (engine == "reticulate") {
    reticulate::import_from_path("engine", dirname(engine_script()))$run(folder)
  } else {
    said <- suppressWarnings(system2(python_path(), shQuote(c(engine_script(), folder)), stdout = TRUE, stderr = TRUE))
    if (!is.null(attr(said, "status"))) {
      stop("the engine ended with code ", attr(said, "status"), ": ", paste(said, collapse = "\n"), call. = FALSE)
    }
  }
  problem <- file.path(folder, "error.txt")
  if (file.exists(problem)) {
    stop(paste(readLines(problem, encoding = "UTF-8", warn = FALSE), collapse = "\n"), call. = FALSE)
  }
  done <- TRUE
  folder
}

read_table <- function(folder, name) {
  path <- file.path(folder, paste0(name, ".csv"))
  if (!file.exists(path)) return(NULL)
  # Labels stay as they are: an item called "1" is no number, and one called "NA" is not missing.
  table <- read.csv(path, check.names = FALSE, colClasses = NA, na.strings = "", encoding = "UTF-8")
  for (column in intersect(c("item", "person", "status"), names(table))) table[[column]] <- as.character(table[[column]])
  for (column in names(table)) {
    values <- table[[column]]
    if (is.character(values) && all(values %in% c("true", "false", NA))) table[[column]] <- values == "true"
  }
  table
}

read_summary <- function(folder) {
  jsonlite::fromJSON(file.path(folder, "summary.json"), simplifyVector = TRUE)
}
