module shardrec.org/overhead

go 1.24

require shardrec.org/shardrec v0.0.0

replace shardrec.org/shardrec => ../../../../bindings/go
