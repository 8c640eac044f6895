// Package mutants shows that the test suites notice faults. Table lists seeded faults: each replaces a few lines of
// one file, and names the suite that must fail because of it. The runner compiles each fault through the go command's
// -overlay flag, so the tree itself is never changed.
//
//	make mutants                       every fault, a few minutes
//	make mutants MUTANTS='redo|hold'   those whose name matches
//
// The short form in the ordinary suite only checks that every fault still applies: each text to be replaced occurs
// exactly once in its file. A change of the product that moves such a text has to move the fault along.
//
// # Adding a fault
//
// A fault belongs here if a person could make it by mistake and a user would pay for it. Choose the smallest change
// that compiles, and name the suite that is meant to notice it. A fault that no suite notices is a missing test, and
// the test comes first.
package mutants
