module shardrec.org/examples/dlrm

go 1.24

require shardrec.org/shardrec v0.2.0
