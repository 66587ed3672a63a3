//go:build !race

package shardrec_test

const raceEnabled = false
