module shardrec.org/examples/first

go 1.24

require shardrec.org/shardrec v0.2.0
