// Package durable looks at the data directory from outside: the commands that
// verify, back up, move and compact it, a second process, a full disk
// and one that confirms nothing.
package durable
