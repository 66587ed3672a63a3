//go:build race

package shardrec_test

// raceEnabled: the race detector keeps memory of its own.
const raceEnabled = true
