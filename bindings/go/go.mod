module shardrec.org/shardrec

go 1.24
