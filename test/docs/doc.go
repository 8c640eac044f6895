// Package docs holds what docs/ says against the real program: every example is run
// against the simulator and its output compared with what the page prints, the
// configuration reference is the one that the program writes, error codes are
// explained, and links lead somewhere. It is not where the program's behaviour is
// tested; the examples show it, they do not exhaust it.
//
// An example is a fenced block whose info string is "sh run". A block after it whose
// info string ends with "expect" is what it prints: white space does not count, and
// ... stands for anything. The examples of a page run in one shell, so that a
// variable set in one can be used in the next, against a gateway of their own.
package docs
