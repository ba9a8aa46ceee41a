# Makes book_r.json: what R says of the data of the open Rasch book (Wind & Hua, CC0) and of Stigler's citations.
#   cd validation/reference && Rscript make_reference.R
# Debian: r-cran-erm r-cran-psychotools r-cran-bradleyterry2 r-cran-psych r-cran-jsonlite. R is not needed otherwise.
suppressMessages({library(eRm); library(psychotools); library(psych); library(jsonlite)})
items_of <- function(file, start) { x <- read.csv(file); x[, grepl(paste0("^", start, "[0-9]+$"), names(x))] }
named <- function(x, names) setNames(as.list(as.numeric(x)), names)
version <- function(...) sapply(c(...), function(p) as.character(packageVersion(p)))

fits <- function(model, names) {
  person <- person.parameter(model)
  fit <- itemfit(person)
  rel <- SepRel(person)
  list(loglik = model$loglik, outfit = named(fit$i.outfitMSQ, names), infit = named(fit$i.infitMSQ, names),
       outfit_z = named(fit$i.outfitZ, names), infit_z = named(fit$i.infitZ, names),
       sep_rel = as.numeric(rel$sep.rel), variance = as.numeric(rel$SSD.PS), mse = as.numeric(rel$MSE))
}
out <- list(versions = as.list(c(R = R.version.string, version("eRm", "psychotools", "psych"))))

x <- items_of("transreas.csv", "task_")
grade <- ifelse(read.csv("transreas.csv")$Grade <= 4, 1, 2)
rm <- RM(x)
ps <- raschmodel(as.matrix(x), reltol = 1e-14, maxit = 1000)
ip <- itempar(ps)
wald <- Waldtest(rm, splitcr = grade)
lr <- LRtest(rm, splitcr = "median"); lr_mean <- LRtest(rm, splitcr = "mean"); lr_grade <- LRtest(rm, splitcr = grade)
ml <- MLoef(rm, splitcr = "median")
pl <- person.parameter(rm)$pred.list[[1]]
a <- suppressMessages(suppressWarnings(alpha(x)))
total <- rowSums(x)
mh <- function(i) {
  s <- total
  t <- table(x[, i], factor(grade), s)
  keep <- apply(t, 3, sum) > 1
  m <- mantelhaen.test(t[, , keep], correct = TRUE)
  c(odds = as.numeric(m$estimate), statistic = as.numeric(m$statistic), p = m$p.value)
}
mhs <- sapply(seq_along(x), mh)
test <- function(t) list(statistic = t$LR, df = t$df, p = t$pvalue)
out$transreas <- c(fits(rm, names(x)), list(
  difficulty = named(coef(ip), names(x)), se = named(sqrt(diag(vcov(ip))), names(x)), loglik_psychotools = as.numeric(logLik(ps)),
  wald_z = named(wald$coef.table[, 1], names(x)[match(sub("beta ", "", rownames(wald$coef.table)), names(x))]),
  lr_median = test(lr), lr_mean = test(lr_mean), lr_grade = test(lr_grade),
  martin_loef = list(statistic = ml$LR, df = ml$df, p = ml$p.value),
  theta = named(pl$y, as.character(pl$x)), alpha = a$total$raw_alpha, corrected = named(a$item.stats$r.drop, names(x)),
  mh_odds = named(mhs["odds", ], names(x)), mh_chi2 = named(mhs["statistic", ], names(x))))

x <- items_of("liking_for_science.csv", "i")
x24 <- x[, names(x) != "i12"]
rsm <- RSM(x24); pr <- rsmodel(as.matrix(x24), reltol = 1e-13, maxit = 1000)
th <- function(m) unlist(threshpar(m, type = "mode"))
a <- suppressMessages(suppressWarnings(alpha(x24)))
out$science_rsm <- c(fits(rsm, names(x24)), list(thresholds = as.numeric(th(pr)), threshold_se = as.numeric(sqrt(diag(vcov(threshpar(pr, type = "mode"))))),
  loglik_psychotools = as.numeric(logLik(pr)), alpha = a$total$raw_alpha, corrected = named(a$item.stats$r.drop, names(x24))))
pcm <- PCM(x24); pp <- pcmodel(as.matrix(x24), reltol = 1e-13, maxit = 1000)
out$science_pcm <- c(fits(pcm, names(x24)), list(thresholds = as.numeric(th(pp)), threshold_se = as.numeric(sqrt(diag(vcov(threshpar(pp, type = "mode"))))),
  loglik_psychotools = as.numeric(logLik(pp))))

x <- items_of("style_ratings.csv", "rater_")
pr <- rsmodel(as.matrix(x), reltol = 1e-13, maxit = 1000)
out$style_rsm <- list(thresholds = as.numeric(th(pr)), loglik_psychotools = as.numeric(logLik(pr)),
  severity = named(coef(itempar(pr)), names(x)), se = named(sqrt(diag(vcov(itempar(pr)))), names(x)))

write(toJSON(out, auto_unbox = TRUE, digits = 13, pretty = TRUE), "book_r.json")
